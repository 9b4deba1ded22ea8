"""The webhook's own certificates: signing, trust, serving, and the order of their changes.

A call succeeds only if three places agree: the caBundles of the webhook configurations (trusted by the API server), the
Secret (shared by all replicas) and the certificate that each replica serves. They change at different times, so the
order matters. The rules, each with its module:

- A new CA is only trusted at first. It stands in the Secret beside the current CA and signs nothing until every bundle
  has carried it for a while (`decision`).
- The bundle always holds the current CA, the next CA and the retired CAs. A CA is retired, not dropped, while a
  replica may still serve a certificate that it signed (`content`).
- A replica reads the bundles before the Secret, and writes a bundle only if it has not changed since. So it never
  removes a CA of a newer Secret (`rotation`, `bundles`).
- A replica that loses a race for the Secret reads it again and goes on from there (`secret`).
- Nothing is scheduled: every few seconds all three are compared with the wall clock. So the next look handles a
  suspended machine, a jump of the clock, a deleted Secret or an emptied bundle.
"""
