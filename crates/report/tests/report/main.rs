//! Reports held to what they must say: a synthetic run in, text and page out.

mod beside_atlas;
mod browser;
mod compare;
mod export;
mod fixture;
mod foreign;
mod interruptions;
mod killed;
mod leaders;
mod live;
mod looks;
mod page;
mod pods;
mod repetitions;
mod text;
