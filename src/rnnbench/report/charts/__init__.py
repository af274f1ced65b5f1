"""Charts: each is built once as a Vega-Lite specification, then drawn as SVG and PNG."""
