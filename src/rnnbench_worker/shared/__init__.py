"""Code that several frameworks' folders share; a manifest's `uses` names what its framework needs of it."""
