"""Share of the promised saving of spot machines that survives interruptions, for several ways to handle them.

    trace, synthetic, published       which machines there are when: pure
    costs, tally, blacklist, driver,
      kubelet, training               what training makes of it: the model, pure
    clock, ageing, pool, world, ranks,
      contenders, replay, contest     a trace played to real control planes
    economics, svg, chart, report     bills, table, picture

docs/spot-economics.md says what is real in this, what is modelled, and what it cannot say.
"""
