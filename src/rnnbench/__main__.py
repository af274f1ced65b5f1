"""`python -m rnnbench` is the same as `rnnbench`."""

from rnnbench.cli.main import main

if __name__ == "__main__":
    main()
