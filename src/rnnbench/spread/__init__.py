"""A run spread over the nodes of a cluster: each comparison group is timed on one node, by the code of a local run."""
