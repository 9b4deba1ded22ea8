"""`status`: the installation at a glance."""
