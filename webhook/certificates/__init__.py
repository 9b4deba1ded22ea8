"""The webhook's own certificates: who signs, who is trusted, what is served, and in which order these change.

Three things must agree for a call to succeed: the caBundle in the webhook configurations (what the API server trusts),
the Secret (what all replicas share) and the certificate each replica serves. They live in different places and change
one at a time, so the whole difficulty is order. The rules, each kept by the module named:

- A new CA is first only trusted. It stands in the Secret beside the current one until every bundle has carried it for a
  while, and signs nothing before that (`decision`).
- The bundle is always the current CA, the next one and the retired ones; a CA is retired, not dropped, while a replica
  may still serve a certificate it signed (`content`).
- A replica looks at the bundles before it looks at the Secret, and writes a bundle only where nobody has since: so it
  never takes out a CA that a newer Secret has put in (`rotation`, `bundles`).
- Whoever loses a race for the Secret reads again and goes on from what the winner wrote (`secret`).
- Nothing is scheduled: every few seconds all three are judged by the clock on the wall. So a suspended machine, a jump
  of the clock, a deleted Secret or a blanked bundle is an ordinary case of the next look.
"""
