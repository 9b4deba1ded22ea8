"""The companion controller: the loop, and the process around it."""
