//! Hosts and nodes as Linux namespaces: made, powered off, limited, accounted for, and never left behind.
//!
//! Owns processes, namespaces, network interfaces inside them, control groups and the evidence about them. Knows
//! nothing of scenarios, databases, or of what the fabric does with the descriptors it is handed.
//!
//! Invariant: everything a lab makes hangs on one supervisor process ([`supervisor`]), PID 1 of its own PID
//! namespace. When it dies, however it dies, the kernel removes the rest.

pub mod accounting;
pub mod addresses;
pub mod arrivals;
pub mod attachment;
mod beneath;
mod bulk;
pub mod canary;
pub mod cgroup;
mod clock_look;
mod connections;
pub mod entrance;
mod furnishing;
pub mod guest;
mod hierarchies;
pub mod init;
pub mod interface;
pub mod interface_losses;
mod ipv6;
pub mod janitor;
mod kept_connection;
mod keyring;
pub mod knock;
pub mod leftovers;
pub mod machine;
mod memory;
pub mod memory_groups;
mod mounts;
mod netlink;
pub mod node;
pub mod node_clock;
pub mod node_groups;
mod node_processes;
mod open_directory;
mod orphans;
pub mod patrol;
pub mod planted_stall;
pub mod probe;
pub mod process_table;
pub mod protocol;
mod removal;
pub mod round_trip;
pub mod routing;
pub mod shell;
mod stopped_processes;
pub mod stray;
pub mod stream;
mod struck_processes;
pub mod supervisor;
mod terminal_filter;
mod unasked_end;
mod volume_files;

pub use addresses::{Addresses, Family};
pub use attachment::Attachment;
pub use bulk::Bulk;
pub use clock_look::ClockLook;
pub use connections::Connections;
pub use furnishing::{DEVICES, MACHINE_FOLDERS};
pub use ipv6::has_ipv6;
pub use kept_connection::KeptConnection;
pub use memory::NodeMemory;
pub use node::{Beat, BootPlan, Finished, Node, NodeError, ProcessId};
pub use node_clock::NodeClock;
pub use node_groups::NodeGroups;
pub use protocol::{StoppedProcess, Strike};
pub use routing::{KernelEnd, RoutingNamespace};
pub use unasked_end::UnaskedEnd;
