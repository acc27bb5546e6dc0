# fbquant-table1.gp -- the plot of fbquant-table1.sh
what = "Ways to quantize weights to 4 and 3 bits, without a low-rank branch and with one"
bars = "one standard error over windows"
rows = "way"; panels = "kl@bits=4".(int(system("grep -c ^3 ".table)) ? " kl@bits=3" : "")
names = "4=4 bits;3=3 bits"
note = "with a branch: 1.1 bits more\n-32 (groups of 32): 0.8 more"
load "rows.gp"
