//! Random steps. What they are about is chosen by small numbers, which the model takes modulo what there is.

use proptest::prelude::*;

/// A name in a directory: both by number.
pub type Place = (u8, u8);

/// One step.
#[derive(Debug, Clone)]
pub enum Step {
    Create(Place),
    MakeDirectory(Place),
    Link(Place, Place),
    Remove(Place),
    Rename(Place, Place),
    Exchange(Place, Place),
    Write { place: Place, offset: u16, bytes: u16, fill: u8, through: bool },
    Cut { place: Place, size: u16 },
    PunchHole { place: Place, offset: u16, bytes: u16 },
    Mode(Place, u8),
    Sync(Place),
    SyncData(Place),
    SyncDirectory(u8),
    PowerOff,
}

impl Step {
    /// Whether it makes anything durable, or takes anything back.
    pub fn syncs(&self) -> bool {
        match self {
            Step::Sync(_) | Step::SyncData(_) | Step::SyncDirectory(_) | Step::PowerOff => true,
            Step::Write { through, .. } => *through,
            _ => false,
        }
    }
}

fn place() -> impl Strategy<Value = Place> {
    (0..4u8, 0..4u8)
}

fn step() -> impl Strategy<Value = Step> {
    let size = 0..14_000u16;
    prop_oneof![
        4 => place().prop_map(Step::Create),
        2 => place().prop_map(Step::MakeDirectory),
        2 => (place(), place()).prop_map(|(old, new)| Step::Link(old, new)),
        3 => place().prop_map(Step::Remove),
        4 => (place(), place()).prop_map(|(old, new)| Step::Rename(old, new)),
        1 => (place(), place()).prop_map(|(one, other)| Step::Exchange(one, other)),
        8 => (place(), size.clone(), 1..6_000u16, any::<u8>(), prop::bool::weighted(0.1)).prop_map(
            |(place, offset, bytes, fill, through)| Step::Write { place, offset, bytes, fill, through }
        ),
        2 => (place(), size.clone()).prop_map(|(place, size)| Step::Cut { place, size }),
        1 => (place(), size, 1..9_000u16).prop_map(|(place, offset, bytes)| Step::PunchHole { place, offset, bytes }),
        1 => (place(), any::<u8>()).prop_map(|(place, mode)| Step::Mode(place, mode)),
        2 => place().prop_map(Step::Sync),
        2 => place().prop_map(Step::SyncData),
        2 => (0..4u8).prop_map(Step::SyncDirectory),
        1 => Just(Step::PowerOff),
    ]
}

/// Up to `most` of them.
pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..most)
}
