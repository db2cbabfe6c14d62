//! Histograms, time lines, recovery times, comparisons; pure
