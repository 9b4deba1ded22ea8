module mpijob-elastic.local/lab/pause

go 1.24.0
