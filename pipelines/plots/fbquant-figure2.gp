# fbquant-figure2.gp -- the plot of fbquant-figure2.sh
what = "Clamping, rotation and sub-branch at 4 and 3 bits, by round-to-nearest"
bars = "one standard error over windows"
rows = "way"; panels = "kl@bits=4 kl@bits=3"
names = "4=4 bits;3=3 bits"
load "rows.gp"
