"""`mpijob-elastic`, `kubectl mpijob-elastic`, `python -m mpijob_elastic`."""

from mpijob_elastic.cli import main

if __name__ == "__main__":
    main()
