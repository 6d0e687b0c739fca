"""`python -m garden` is the command `garden`."""

import sys

from garden.cli import main

if __name__ == "__main__":
    sys.exit(main())
