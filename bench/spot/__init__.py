"""Spot economics: how many steps of training remain when machines are taken away, for each way to handle that.

    trace                                which machines exist when
    tally, driver, training              the model of training (pure)
    pool, world, replay                  play a trace to a real control plane
    contest                              the compared ways

docs/records/spot-economics.md says what is real, what is modelled, and where the limits are.
"""
