//! What holds of the repository as a whole: it is tidy, its documents show what can be typed, its reference is what the
//! registries say, and the scenarios for clusters that exist end as they should on three machines.

mod campaign;
mod documents;
mod reference;
mod tidy;
mod trial;
