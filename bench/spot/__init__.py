"""How much of the saving that spot machines promise survives their interruptions, by how interruptions are handled.

    trace, synthetic, published       which machines there are when: pure
    costs, tally, blacklist, driver,
      kubelet, training               what training makes of it: the model, pure
    clock, ageing, pool, world, ranks,
      contenders, replay, contest     a trace played to real control planes
    economics, svg, chart, report     bills, table, picture

docs/spot-economics.md says what is real in this, what is modelled, and what it cannot say.
"""
