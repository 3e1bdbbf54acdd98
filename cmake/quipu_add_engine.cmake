# Defined in full with the programs.
