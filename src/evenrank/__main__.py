"""`python -m evenrank`, the same as `evenrank`."""

import sys

from evenrank.cli import main

if __name__ == "__main__":
    sys.exit(main())
