//! Histories in EDN, as Jepsen writes and reads them, so that its checkers and ours can be held against each other.
//!
//! Owns which of our operations are which of Jepsen's. `form` reads EDN itself, `import` pairs invocations with
//! completions, `export` takes operations apart again. EDN: <https://github.com/edn-format/edn>.

mod export;
mod form;
mod import;

pub use export::{ExportError, export};
pub use form::{FORM_BYTES_MAX, Form, FormError, Forms};
pub use import::{EdnError, EdnHistory, Model, Remarks, UnknownModel};
