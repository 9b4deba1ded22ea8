"""The commands: each module holds the options, the checks and the help text of one command."""
