//! The cluster through kubectl: objects as the API documents them, calls, ways and watches against a stand-in for kubectl, and
//! recoveries told from sightings. This shows what is made of kubectl's words, not that a cluster says them.

mod calls;
mod forwards;
mod objects;
mod recovery;
mod robustness;
mod stub;
mod watching;
