//! Run directory to one self-contained HTML file. Reads nothing but the run directory.

pub mod result;
