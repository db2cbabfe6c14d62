//! `holdfast schema`: the scenario's JSON Schema.

use crate::exit::Exit;
use crate::printed;

/// Prints the schema.
pub fn schema() -> Result<Exit, Exit> {
    printed!("{}", serde_json::to_string_pretty(&scenario::json_schema()).map_err(Exit::failed)?);
    Ok(Exit::Done)
}
