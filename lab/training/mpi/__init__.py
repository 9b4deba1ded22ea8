"""An MPI program that elastic.sh drives, on a cluster with a real node, and how its training went."""
