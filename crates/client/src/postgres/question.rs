//! The messages that run a prepared statement, written straight into the outgoing buffer.
//!
//! Owns their form only. One parameter costs no allocation; values travel as text, so that a number fits whatever width
//! of integer the server has in its place.

use bytes::{BufMut, BytesMut};

use crate::session::SqlValue;

/// Ends a question: the server answers everything before it and says when it is ready.
pub(super) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Runs the unnamed portal to its end.
const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// The number of parameters the protocol can carry.
pub(super) const MOST_PARAMETERS: usize = u16::MAX as usize;

/// What stands at the head of every bind of the statement `name` to the unnamed portal: both names, and that all
/// parameters are text.
pub(super) fn opening(name: &str) -> Vec<u8> {
    [b"\0", name.as_bytes(), b"\0", &[0, 0]].concat()
}

/// Bind and execute of the statement with this opening.
pub(super) fn write_execution(opening: &[u8], parameters: &[SqlValue<'_>], out: &mut BytesMut) {
    out.put_u8(b'B');
    let length_at = out.len();
    out.put_i32(0);
    out.put_slice(opening);
    out.put_u16(parameters.len().min(MOST_PARAMETERS) as u16);
    let mut digits = itoa::Buffer::new();
    for parameter in parameters {
        let text = match parameter {
            SqlValue::Null => {
                out.put_i32(-1);
                continue;
            }
            SqlValue::Integer(number) => digits.format(*number),
            SqlValue::Text(text) => text,
        };
        // Longer than the protocol can say is refused before this is called.
        out.put_i32(i32::try_from(text.len()).unwrap_or(i32::MAX));
        out.put_slice(text.as_bytes());
    }
    // All columns of the answer as text.
    out.put_u16(0);
    let length = i32::try_from(out.len() - length_at).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(length_at..length_at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    out.put_slice(&EXECUTE);
}

/// Why these parameters cannot be sent.
pub(super) fn refusal(parameters: &[SqlValue<'_>]) -> Option<&'static str> {
    const LARGEST_BYTES: usize = 1 << 30;
    let bytes = |parameter: &SqlValue<'_>| match parameter {
        SqlValue::Text(text) => text.len(),
        SqlValue::Integer(_) | SqlValue::Null => 0,
    };
    if parameters.len() > MOST_PARAMETERS {
        return Some("more parameters than a statement can have");
    }
    let all = parameters.iter().map(bytes).fold(0, usize::saturating_add);
    (all > LARGEST_BYTES).then_some("parameters of more than 1 GiB")
}

#[cfg(test)]
mod tests {
    use postgres_protocol::IsNull;
    use postgres_protocol::message::frontend;

    use super::*;

    #[test]
    fn an_execution_is_written_byte_by_byte_as_the_protocol_library_writes_it() {
        let check = |name: &str, parameters: &[SqlValue<'_>]| {
            let mut ours = BytesMut::new();
            write_execution(&opening(name), parameters, &mut ours);
            ours.put_slice(&SYNC);
            let mut theirs = BytesMut::new();
            let written = frontend::bind(
                "",
                name,
                [],
                parameters,
                |value, out| {
                    match value {
                        SqlValue::Null => return Ok(IsNull::Yes),
                        SqlValue::Integer(number) => out.put_slice(number.to_string().as_bytes()),
                        SqlValue::Text(text) => out.put_slice(text.as_bytes()),
                    }
                    Ok(IsNull::No)
                },
                [],
                &mut theirs,
            );
            assert!(written.is_ok());
            frontend::execute("", 0, &mut theirs).expect("execute");
            frontend::sync(&mut theirs);
            assert_eq!(ours, theirs, "{name} {parameters:?}");
        };
        check("h0", &[]);
        check("h17", &[SqlValue::Integer(i64::MIN), SqlValue::Null, SqlValue::Text("sieben'\\ü")]);
        check("", &[SqlValue::Text(""); 300]);
    }

    #[test]
    fn what_the_protocol_cannot_carry_is_refused() {
        assert_eq!(refusal(&[SqlValue::Integer(1); 65_535]), None);
        assert!(refusal(&[SqlValue::Null; 65_536]).is_some());
    }
}
