//! Histories as they are written: what goes into a file comes out of it, whole or cut short, and what others' checkers read.

mod edn;
mod round_trip;
