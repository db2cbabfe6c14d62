//! The messages that run a prepared statement, written straight into the outgoing buffer.
//!
//! Owns their form only. One parameter costs no allocation; values travel as text, so that a number fits whatever width
//! of integer the server has in its place.

use bytes::BytesMut;

use crate::sql::SqlValue;

/// Ends a question: the server answers everything before it and says when it is ready.
pub(super) const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Runs the unnamed portal to its end.
const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// The number of parameters the protocol can carry.
pub(super) const MOST_PARAMETERS: usize = u16::MAX as usize;

/// What stands at the head of every bind of the statement `name` to the unnamed portal: the message's tag, room for its
/// length, both names, and that all parameters are text.
pub(super) fn opening(name: &str) -> Vec<u8> {
    [b"B\0\0\0\0\0", name.as_bytes(), b"\0\0\0"].concat()
}

/// Where a bind's length stands.
const LENGTH_AT: usize = 1;

/// Bind and execute of the statement with this opening; `piece` is room to put them together in, which goes from question
/// to question.
pub(super) fn write_execution(
    opening: &[u8],
    parameters: &[SqlValue<'_>],
    piece: &mut Vec<u8>,
    out: &mut BytesMut,
) {
    piece.clear();
    piece.extend_from_slice(opening);
    let count = u16::try_from(parameters.len()).unwrap_or(u16::MAX);
    piece.extend_from_slice(&count.to_be_bytes());
    let mut digits = itoa::Buffer::new();
    for parameter in parameters {
        let text = match parameter {
            SqlValue::Null => {
                piece.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            SqlValue::Integer(number) => digits.format(*number),
            SqlValue::Text(text) => text,
        };
        // Longer than the protocol can say is refused before this is called.
        piece.extend_from_slice(&i32::try_from(text.len()).unwrap_or(i32::MAX).to_be_bytes());
        piece.extend_from_slice(text.as_bytes());
    }
    // All columns of the answer as text.
    piece.extend_from_slice(&[0, 0]);
    let length = i32::try_from(piece.len() - LENGTH_AT).unwrap_or(i32::MAX);
    if let Some(place) = piece.get_mut(LENGTH_AT..LENGTH_AT + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    piece.extend_from_slice(&EXECUTE);
    out.extend_from_slice(piece);
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
    use bytes::BufMut;
    use postgres_protocol::IsNull;
    use postgres_protocol::message::frontend;

    use super::*;

    #[test]
    fn an_execution_is_written_byte_by_byte_as_the_protocol_library_writes_it() {
        let check = |name: &str, parameters: &[SqlValue<'_>]| {
            let mut ours = BytesMut::new();
            // What is left of another question does no harm.
            let mut piece = b"another".to_vec();
            write_execution(&opening(name), parameters, &mut piece, &mut ours);
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
