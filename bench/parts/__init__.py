"""What can be asked for on the command line: each part runs in a lab of its own and gives figures."""
