"""Looks of two builds into workers that write lines of progress: the CPU that they cost the controller."""
