"""The admission server: it adds discover_hosts.sh where the operator creates it without, and checks annotations early.

request -> pure function from object to patch or verdict -> answer. No read and no write of the API happens on that way.
"""
