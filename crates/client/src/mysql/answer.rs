//! What a server of MySQL's protocol answers: packet by packet, results of one statement or several.
//!
//! Owns the order of packets and how values become text. What an answer means for a transaction is the session's. Source:
//! MySQL internals manual, "Text resultset" and "Binary protocol resultset".

use std::io;

use mysql_common::Value;
use mysql_common::constants::{CapabilityFlags, ColumnFlags, ColumnType, StatusFlags};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    CommonOkPacket, ErrPacket, OkPacket, OkPacketDeserializer, OkPacketKind, OldEofPacket,
};
use mysql_common::value::{BinValue, ValueDeserializer};

use crate::Rows;
use crate::statement_kind::TransactionStatus;
use crate::wire::invalid;

/// What is kept of an error's text.
const LONGEST_TEXT_BYTES: usize = 4 << 10;

/// What the session asks of the protocol; see `login`. Old ends of results: every server has them.
pub(super) const CAPABILITIES: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    // An update counts the rows that it matched, as other databases do, not those that it changed.
    .union(CapabilityFlags::CLIENT_FOUND_ROWS)
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_STATEMENTS)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH)
    .union(CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA);

const OK: u8 = 0x00;
pub(super) const LOCAL_INFILE: u8 = 0xFB;
const NULL_TEXT: u8 = 0xFB;
const EOF: u8 = 0xFE;
const ERR: u8 = 0xFF;
/// A packet this long that begins with an end's sign is a row.
const LONGEST_EOF_BYTES: usize = 8;

/// An error of the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) sql_state: String,
    pub(super) text: String,
}

/// The columns of a result: all but their names.
pub(super) type Columns = Vec<(ColumnType, ColumnFlags)>;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    /// The beginning of a statement's result.
    #[default]
    Result,
    /// So many columns' definitions, then their end.
    Columns(u64),
    EndOfColumns,
    Row,
}

/// What has been read of an answer so far; it outlives the reading, which may time out.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) sent_anything: bool,
    /// Those of the last statement that returned any.
    pub(super) rows: Rows,
    pub(super) rows_of_this_statement: Rows,
    /// Rows written by all statements together.
    pub(super) affected: u64,
    /// Statements answered with success.
    pub(super) completed: usize,
    /// Boxed: the good case should not carry its size about.
    pub(super) error: Option<Box<Refusal>>,
    pub(super) is_binary: bool,
    /// Whether a result says if its columns follow: a server that knows that the client has them leaves them out.
    pub(super) may_omit_columns: bool,
    /// Of the result that is read, or of the statement's last one.
    pub(super) columns: Columns,
    next: Next,
}

impl Answer {
    /// To a question in text, or to an execution.
    pub(super) fn new(is_binary: bool) -> Self {
        Self { is_binary, ..Self::default() }
    }

    /// Takes in one packet; true when the answer is whole.
    pub(super) fn take(&mut self, packet: &[u8], status: &mut TransactionStatus) -> io::Result<bool> {
        let first = packet.first().copied().ok_or_else(|| invalid("an empty packet"))?;
        if first == ERR && self.next != Next::EndOfColumns {
            self.error = Some(Box::new(refusal(packet)?));
            return Ok(true);
        }
        match self.next {
            Next::Result if first == OK => {
                let ok = ok_packet::<CommonOkPacket>(packet)?;
                self.rows_of_this_statement.set_affected(ok.affected_rows());
                self.affected = self.affected.saturating_add(ok.affected_rows());
                Ok(self.statement_ends(&ok, status))
            }
            Next::Result if first == LOCAL_INFILE => Err(invalid("the server asks for a file")),
            Next::Result => {
                self.next = self.columns_of(packet)?;
                Ok(false)
            }
            Next::Columns(left) => {
                self.columns.push(column(packet).ok_or_else(cut_off)?);
                self.next = if left > 1 { Next::Columns(left - 1) } else { Next::EndOfColumns };
                Ok(false)
            }
            Next::EndOfColumns if first == EOF => {
                self.next = Next::Row;
                Ok(false)
            }
            Next::EndOfColumns => Err(invalid("columns without an end")),
            Next::Row if first == EOF && packet.len() <= LONGEST_EOF_BYTES => {
                let eof = ok_packet::<OldEofPacket>(packet)?;
                let rows = self.rows_of_this_statement.len() as u64;
                self.rows_of_this_statement.set_affected(rows);
                Ok(self.statement_ends(&eof, status))
            }
            Next::Row => self.row(packet).map(|()| false),
        }
    }

    /// What comes behind the beginning of a result: its columns, unless they are known.
    fn columns_of(&mut self, packet: &[u8]) -> io::Result<Next> {
        let mut rest = ParseBuf(packet);
        let count = rest.checked_eat_lenenc_int().filter(|count| *count > 0).ok_or_else(cut_off)?;
        if !self.may_omit_columns || rest.checked_eat(1).ok_or_else(cut_off)? != [0] {
            self.columns.clear();
            return Ok(Next::Columns(count));
        }
        if self.columns.len() as u64 != count {
            return Err(invalid("a result without its columns, which were never sent"));
        }
        Ok(Next::EndOfColumns)
    }

    fn statement_ends(&mut self, end: &OkPacket<'_>, status: &mut TransactionStatus) -> bool {
        let flags = end.status_flags();
        let is_open = flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS);
        *status = if is_open { TransactionStatus::Open } else { TransactionStatus::Idle };
        self.completed += 1;
        self.next = Next::Result;
        if !self.rows_of_this_statement.is_empty() || self.rows.is_empty() {
            std::mem::swap(&mut self.rows, &mut self.rows_of_this_statement);
        }
        // The room goes from statement to statement.
        self.rows_of_this_statement.clear();
        !flags.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS)
    }

    fn row(&mut self, packet: &[u8]) -> io::Result<()> {
        let count = u16::try_from(self.columns.len()).map_err(|_| invalid("too many columns"))?;
        let rows = &mut self.rows_of_this_statement;
        rows.begin_row(count);
        let mut rest = ParseBuf(packet);
        if !self.is_binary {
            for _ in 0..count {
                if rest.0.first() == Some(&NULL_TEXT) {
                    rest.skip(1);
                    rows.push_cell(None);
                } else {
                    rows.push_cell(Some(rest.checked_eat_lenenc_str().ok_or_else(cut_off)?));
                }
            }
            return Ok(());
        }
        // A sign, then a bit for each column that is NULL, two bits in.
        let (_, nulls) = (rest.checked_eat(1), rest.checked_eat((usize::from(count) + 9) / 8));
        let nulls = nulls.ok_or_else(cut_off)?;
        for (place, column) in self.columns.iter().enumerate() {
            let bit = place + 2;
            if nulls.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1) {
                rows.push_cell(None);
                continue;
            }
            let value: ValueDeserializer<BinValue> = rest.parse(*column)?;
            push_value(&value.0, rows);
        }
        Ok(())
    }
}

/// A value as text, as the text protocol would have it.
fn push_value(value: &Value, rows: &mut Rows) {
    let mut digits = itoa::Buffer::new();
    match value {
        Value::NULL => rows.push_cell(None),
        Value::Bytes(bytes) => rows.push_cell(Some(bytes)),
        Value::Int(number) => rows.push_cell(Some(digits.format(*number).as_bytes())),
        Value::UInt(number) => rows.push_cell(Some(digits.format(*number).as_bytes())),
        Value::Float(number) => rows.push_cell(Some(number.to_string().as_bytes())),
        Value::Double(number) => rows.push_cell(Some(number.to_string().as_bytes())),
        // As a literal without its quotes.
        date @ (Value::Date(..) | Value::Time(..)) => {
            let literal = date.as_sql(false);
            rows.push_cell(Some(literal.trim_matches('\'').as_bytes()));
        }
    }
}

/// A column's type: all but its names.
pub(super) fn column(packet: &[u8]) -> Option<(ColumnType, ColumnFlags)> {
    let mut rest = ParseBuf(packet);
    for _ in 0..6 {
        rest.checked_eat_lenenc_str()?;
    }
    // The length of what follows, the character set, the widest value.
    rest.checked_eat(1 + 2 + 4)?;
    let [kind, low, high] = rest.checked_eat(3)?.try_into().ok()?;
    let kind = ColumnType::try_from(kind).ok()?;
    Some((kind, ColumnFlags::from_bits_truncate(u16::from_le_bytes([low, high]))))
}

pub(super) fn ok_packet<Kind: OkPacketKind>(packet: &[u8]) -> io::Result<OkPacket<'_>> {
    let mut rest = ParseBuf(packet);
    rest.parse::<OkPacketDeserializer<'_, Kind>>(CAPABILITIES).map(OkPacketDeserializer::into_inner)
}

/// The error in a packet.
pub(super) fn refusal(packet: &[u8]) -> io::Result<Refusal> {
    match ParseBuf(packet).parse::<ErrPacket<'_>>(CAPABILITIES)? {
        ErrPacket::Error(error) => {
            let text = error.message_ref();
            let text = text.get(..LONGEST_TEXT_BYTES).unwrap_or(text);
            Ok(Refusal {
                code: error.error_code(),
                sql_state: error
                    .sql_state_ref()
                    .map_or_else(String::new, |state| state.as_str().into_owned()),
                text: String::from_utf8_lossy(text).into_owned(),
            })
        }
        ErrPacket::Progress(_) => Err(invalid("a report of progress that was not asked for")),
    }
}

/// Whether the packet is an error.
pub(super) fn is_refusal(packet: &[u8]) -> bool {
    packet.first() == Some(&ERR)
}

/// Whether the packet is a success.
pub(super) fn is_ok(packet: &[u8]) -> bool {
    packet.first() == Some(&OK)
}

pub(super) fn cut_off() -> io::Error {
    invalid("a packet shorter than it claims")
}

/// Reads any bytes as packets of one answer in text and of one in binary, for who looks for bytes that a parser cannot bear.
/// Before each stands its length in a byte.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) {
    for (is_binary, may_omit_columns) in [(false, false), (true, false), (true, true)] {
        let mut answer = Answer { may_omit_columns, ..Answer::new(is_binary) };
        let mut status = TransactionStatus::Idle;
        let mut left = bytes;
        while let Some((length, rest)) = left.split_first() {
            let (packet, behind) = rest.split_at(rest.len().min(usize::from(*length)));
            if !matches!(answer.take(packet, &mut status), Ok(false)) {
                break;
            }
            left = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column_of(kind: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        for name in ["def", "", "", "", "a", ""] {
            packet.push(u8::try_from(name.len()).expect("short"));
            packet.extend_from_slice(name.as_bytes());
        }
        packet.extend_from_slice(&[0x0C, 0x21, 0, 0, 0, 0, 0, kind, 0, 0, 0, 0, 0]);
        packet
    }

    fn taken(answer: &mut Answer, packets: &[&[u8]]) -> Vec<bool> {
        let mut status = TransactionStatus::Idle;
        packets.iter().map(|packet| answer.take(packet, &mut status).expect("a packet")).collect()
    }

    const OF_COLUMNS: &[u8] = &[EOF, 0, 0, 2, 0];

    #[test]
    fn both_forms_of_a_row_become_the_same_text() {
        let (long, text) = (column_of(0x08), column_of(0xFD));
        let mut answer = Answer::new(false);
        let row: &[u8] = &[2, b'-', b'7', NULL_TEXT];
        let seen = taken(&mut answer, &[&[2], &long, &text, OF_COLUMNS, row, OF_COLUMNS]);
        assert_eq!(seen, [false, false, false, false, false, true]);
        let mut binary = Answer::new(true);
        let number = (-7_i64).to_le_bytes();
        let row = [&[0, 0b1000][..], &number].concat();
        taken(&mut binary, &[&[2], &long, &text, OF_COLUMNS, &row, OF_COLUMNS]);
        assert_eq!(answer.rows, binary.rows);
        assert_eq!(
            (answer.rows.integer(0, 0), answer.rows.text(0, 1), answer.rows.affected()),
            (Some(-7), None, 1)
        );
    }

    #[test]
    fn columns_that_were_sent_before_may_be_left_out_and_others_may_not() {
        let (long, row) = (column_of(0x08), [&[0, 0][..], &7_i64.to_le_bytes()].concat());
        let (sent, omitted): (&[u8], &[u8]) = (&[1, 1], &[1, 0]);
        let begun = || Answer { may_omit_columns: true, ..Answer::new(true) };
        let mut first = begun();
        taken(&mut first, &[sent, &long, OF_COLUMNS, &row, OF_COLUMNS]);
        let mut second = Answer { columns: first.columns, ..begun() };
        assert_eq!(taken(&mut second, &[omitted, OF_COLUMNS, &row, OF_COLUMNS]), [false, false, false, true]);
        assert_eq!(second.rows, first.rows);
        for (columns, packet) in [(Columns::new(), omitted), (second.columns, &[2, 0][..])] {
            let mut answer = Answer { columns, ..begun() };
            assert!(answer.take(packet, &mut TransactionStatus::Idle).is_err(), "{packet:?}");
        }
        assert!(
            begun().take(&[1], &mut TransactionStatus::Idle).is_err(),
            "nothing says whether they follow"
        );
    }

    #[test]
    fn several_results_are_one_answer_and_an_error_ends_it() {
        let more: &[u8] = &[OK, 3, 0, 0x0A, 0, 0, 0];
        let error = [&[ERR, 0xBD, 0x04, b'#'][..], b"40001Deadlock found"].concat();
        let mut answer = Answer::new(false);
        assert_eq!(taken(&mut answer, &[more, more, &error]), [false, false, true]);
        assert_eq!((answer.completed, answer.affected), (2, 6));
        let refusal = answer.error.expect("an error");
        assert_eq!((refusal.code, refusal.sql_state.as_str()), (1213, "40001"));
        assert_eq!(refusal.text, "Deadlock found");
    }

    #[test]
    fn packets_cut_anywhere_are_refused_and_none_panics() {
        let (long, date) = (column_of(0x08), column_of(0x0C));
        let row = [&[0, 0][..], &7_i64.to_le_bytes(), &[4, 0xE4, 0x07, 1, 2]].concat();
        for cut in 0..row.len() {
            let mut answer = Answer::new(true);
            taken(&mut answer, &[&[2], &long, &date, OF_COLUMNS]);
            assert!(answer.take(&row[..cut], &mut TransactionStatus::Idle).is_err(), "cut at {cut}");
        }
        for cut in 0..long.len() - 3 {
            let mut answer = Answer::new(true);
            taken(&mut answer, &[&[1]]);
            assert!(answer.take(&long[..cut], &mut TransactionStatus::Idle).is_err(), "cut at {cut}");
        }
        let mut answer = Answer::new(true);
        assert!(taken(&mut answer, &[&[2], &long, &date, OF_COLUMNS, &row, OF_COLUMNS])[5]);
        assert_eq!(answer.rows.text(0, 1), Some("2020-01-02"));
        for strange in [&[][..], &[LOCAL_INFILE], &[OK]] {
            assert!(Answer::new(false).take(strange, &mut TransactionStatus::Idle).is_err(), "{strange:?}");
        }
    }
}
