"""The experiments of the paper, one file each: what to run, and how it is run; `report` draws what came out."""
