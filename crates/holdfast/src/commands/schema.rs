//! `holdfast schema`: the JSON Schema of scenarios, and that of engine files.

use crate::exit::Exit;
use crate::printed;

/// Prints a schema.
pub fn schema(of_engines: bool) -> Result<Exit, Exit> {
    let schema = if of_engines { capabilities::file::json_schema() } else { scenario::json_schema() };
    printed!("{}", serde_json::to_string_pretty(&schema).map_err(Exit::failed)?);
    Ok(Exit::Done)
}
