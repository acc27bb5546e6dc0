# outliers.gp -- the plot of outliers.sh
what = "Outliers by kind of layer, after smoothing, rotation and suppression"
bars = "from the geometric mean over layers to the largest layer"
rows = "kind"; series = "way"; panels = "log:kurtosis log:incoherence"
names = "as it is=original"
load "rows.gp"
