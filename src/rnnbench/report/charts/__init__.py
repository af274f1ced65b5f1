"""Charts: each built once as a Vega-Lite specification, then drawn to SVG and PNG, on light and on dark."""
