//! What a deployment survives, by the rules and by enumeration of every possible world, and the rules of best practice.

mod practice;
mod survival;
mod survival_by_enumeration;
