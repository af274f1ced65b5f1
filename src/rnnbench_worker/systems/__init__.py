"""One folder per framework: manifest.toml for the driver, modules for the worker."""
