"""The webhook's own certificates: signing, trust, serving, and the order of their changes.

A call succeeds only if three places agree: the caBundles of the webhook configurations (trusted by
the API server), the Secret (shared by all replicas) and the certificate that each replica serves.
They change at different times, so the order matters. `decision` and `pairs` are pure. The rules,
each with its module:

- A new CA is only trusted at first. It comes together with a certificate that its predecessor
  signs, and signs the next certificate, weeks later (`decision`). If its predecessor is lost, the
  new CA signs at once, and a replica that has a valid certificate serves that certificate until
  every bundle has carried the new CA for a while (`rotation`).
- The bundle always holds the current CA and the retired CAs. A CA is retired, not dropped, while a
  replica may still serve a certificate that it signed (`decision`).
- A replica reads the bundles before the Secret, and writes a bundle only if it has not changed
  since. So it never removes a CA of a newer Secret (`rotation`, `shared`).
- A replica that loses a race for the Secret reads it again and goes on from there (`rotation`).
- Nothing is scheduled: every few seconds all three are compared with the wall clock. So the next
  look handles a suspended machine, a jump of the clock, a deleted Secret or an emptied bundle.

`rotation` and what it needs run in a process of their own, which ends once there is nothing to do
(`apart`, `apart_process`, `messages`). The webhook keeps what it serves (`handshakes`). The process
is told what that is, so it goes on with the order of changes where the last process stopped. What
it does not know, since when a CA is trusted, it waits for anew.
"""
