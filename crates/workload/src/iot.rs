//! Time series of machines' sensors, as NoSQLBench's `cql-iot` has them.
//!
//! Follows that workload's bindings: cycle n writes for machine n modulo `machines`, a sensor chosen by a hash, a time that
//! moves on 100 ms for every round over all machines, a value around 100 with a deviation of 5, the machine's station,
//! and 800 to 1200 characters of data; a read asks for the newest `limit` values of one machine and sensor. FR-2 ran it
//! with 90 % and with 50 % writes. Where it differs: the data is random text instead of pieces of one text, so that no
//! database can compress it away; and no two loads have a time in common, so that those that share a table write no row of each
//! other. The column `w` is ours: which write a row comes from, for the check `last-writes`. How a value
//! stands in a database of keys and values is `series`' business.
//!
//! Options: `write`, `machines`, `sensors`, `stations`, `limit`, `data_min`, `data_max`, `preload`.

mod series;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{KeyValueSession, Operation};
use client::{BulkLoad, Dialect, Session, SessionError, SessionFuture, SqlSession, SqlValue};
use history::Action;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::cells::{LOADED, next_write, read_all};
use crate::dialect::analyse;
use crate::distribution::hash::fnv64;
use crate::keyed_cells::{KeyedCells, RowsToLoad};
use crate::loading::Loading;
use crate::options::{ConfigurationError, Options};
use crate::parallel;
use crate::random_text::{push_alphanumeric, push_alphanumeric_of};
use crate::taken_key::where_taken;
use crate::workload::{
    Attempt, CLIENT_ROUND, ClientState, Request, Statement, TableSetup, Workload, refused, rows_bytes,
};

const WRITE: usize = 0;
const READ: usize = 1;
const KINDS: &[&str] = workloads::IOT.kinds;

/// Milliseconds between two values of a machine.
const INTERVAL_MS: u64 = 100;
/// When the time series begin: 2020-01-01, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_577_836_800_000;

/// Rows loaded by one session, and sessions at most.
const ROWS_PER_SESSION: u64 = 20_000;
const SESSIONS_MAX: u64 = 4;

/// See the module.
pub struct Iot {
    write: f64,
    machines: u64,
    sensors: u64,
    stations: u64,
    data: (usize, usize),
    preload: u64,
    /// The most values of a read.
    limit: u32,
    statements: [Statement; 2],
    /// The next cycle that writes.
    cycle: AtomicU64,
}

/// A value sent by a machine, or what a read asks for.
#[derive(Debug, Clone, PartialEq)]
struct Drawn {
    machine: String,
    sensor: String,
    time_ms: u64,
    value: f64,
    station: String,
    data: String,
    write: u64,
}

impl Iot {
    /// With these options.
    ///
    /// # Errors
    /// When one of them does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("iot", given);
        let write = options.share("write")?;
        let machines = options.count("machines")?;
        let sensors = options.count("sensors")?;
        let stations = options.count("stations")?;
        let limit = options.count("limit")?;
        let data_min = options.count("data_min")?;
        let data_max = options.count_within("data_max", data_min..=u64::MAX, ", at least `data_min`")?;
        let preload = options.count("preload")?;
        options.finish()?;
        let read = format!(
            "SELECT machine_id, sensor_name, time, sensor_value, station_id, data FROM holdfast_iot \
             WHERE machine_id = $1 AND sensor_name = $2 ORDER BY time DESC LIMIT {limit}"
        );
        let characters = |count| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Iot {
            write,
            machines,
            sensors,
            stations,
            data: (characters(data_min), characters(data_max)),
            preload,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            statements: [
                Statement::in_each(
                    KINDS[WRITE],
                    "INSERT INTO holdfast_iot (machine_id, sensor_name, time, sensor_value, station_id, data, w) \
                     VALUES ($1, $2, to_timestamp($3::float8 / 1000), $4, $5, $6, $7)",
                    "INSERT INTO holdfast_iot (machine_id, sensor_name, time, sensor_value, station_id, data, w) \
                     VALUES ($1, $2, '1970-01-01' + INTERVAL $3 * 1000 MICROSECOND, $4, $5, $6, $7)",
                    "INSERT INTO holdfast_iot (machine_id, sensor_name, time, sensor_value, station_id, data, w) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7)",
                ),
                Statement::shaped(KINDS[READ], read),
            ],
            // Also where somebody else has loaded them: a lab that is kept, another agent.
            cycle: AtomicU64::new(preload),
        })
    }

    /// What the cycle sends, but for its data.
    fn of_cycle(&self, cycle: u64, write: u64, rng: &mut impl Rng) -> Drawn {
        Drawn {
            machine: uuid(cycle % self.machines, 1),
            sensor: format!("sensor-{}", fnv64(cycle) % self.sensors),
            time_ms: BEGIN_MS + cycle / self.machines * INTERVAL_MS,
            value: 100.0 + 5.0 * standard_normal(rng),
            station: uuid(cycle / self.machines % self.stations, 2),
            data: String::new(),
            write,
        }
    }
}

/// How long after the beginning of an interval the load of this client writes. What is loaded stands at the beginning.
fn ms_of_load(client: u64) -> u64 {
    1 + client / CLIENT_ROUND % (INTERVAL_MS - 1)
}

/// A number as the identifier of one of its kind: the same for the same number, and no other's.
fn uuid(number: u64, kind: u64) -> String {
    let (high, low) = (fnv64(number ^ kind << 56), number);
    format!(
        "{:08x}-{:04x}-{kind:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// A normally distributed number, by Box and Muller.
fn standard_normal(rng: &mut impl Rng) -> f64 {
    // From 0 to 1, 0 excluded: its logarithm would be no number.
    let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

impl Workload for Iot {
    fn loaded_bytes(&self, _scale: u32) -> u64 {
        rows_bytes(self.preload, self.data, series::BESIDE_DATA)
    }

    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::IOT
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(_) = setup.session {
                return self.load_series(setup).await;
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_iot").await?;
            session.batch(table(session.dialect())).await?;
            let sessions = self.preload.div_ceil(ROWS_PER_SESSION).min(SESSIONS_MAX);
            let share = self.preload.div_ceil(sessions.max(1));
            let mut parts = Vec::new();
            for part in 0..sessions {
                parts.push((setup.open().await?, part * share..((part + 1) * share).min(self.preload)));
            }
            let loading = &Loading::begin("holdfast_iot", self.preload, setup.progress);
            let loads = parts
                .into_iter()
                .map(|(mut session, cycles)| async move { self.load(session.sql()?, cycles, loading).await });
            parallel::all(loads).await?;
            analyse(setup.session.sql()?, "holdfast_iot").await?;
            (setup.progress)(format!("{} values of the time series are loaded", self.preload));
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        if client.rng.random::<f64>() < self.write {
            let cycle = self.cycle.fetch_add(1, Ordering::Relaxed);
            let write = next_write(client);
            let mut drawn = self.of_cycle(cycle, write, &mut client.rng);
            drawn.data = self.draw_data(&mut client.rng);
            drawn.time_ms += ms_of_load(client.client);
            // Every write is a row of its own: its cell is its number.
            return Request::detailed(Action::CellsWrite { cells: vec![write], value: write }, WRITE, drawn);
        }
        let cycle = client.rng.random_range(0..self.cycle.load(Ordering::Relaxed).max(1));
        let drawn = self.of_cycle(cycle, 0, &mut client.rng);
        Request::detailed(
            Action::Transaction { name: KINDS[READ].into(), rolled_back: false, row: None },
            READ,
            drawn,
        )
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let drawn = request.details::<Drawn>()?;
            if let Session::KeyValue(session) = attempt.session {
                return self.perform_by_key(request.kind, &drawn, session.as_mut()).await;
            }
            let (machine, sensor) = (SqlValue::Text(&drawn.machine), SqlValue::Text(&drawn.sensor));
            if request.kind == READ {
                attempt.run(READ, &[machine, sensor]).await?;
                return Ok(());
            }
            let (time, value) = (drawn.time_ms.to_string(), drawn.value.to_string());
            let values = [
                machine,
                sensor,
                SqlValue::Text(&time),
                SqlValue::Text(&value),
                SqlValue::Text(&drawn.station),
                SqlValue::Text(&drawn.data),
                SqlValue::Integer(drawn.write.cast_signed()),
            ];
            let rows = attempt.run(WRITE, &values).await.map_err(where_taken)?;
            if rows.affected() == 1 {
                return Ok(());
            }
            // Committed, but not as the one row it was: nothing definite can be said of it.
            let message = format!("write {} wrote {} rows", drawn.write, rows.affected());
            Err(SessionError { definite: false, ..refused(message) })
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let session = match session {
                Session::KeyValue(session) => {
                    let cell = |_: &str, write: u64| Some(write).filter(|write| *write != LOADED);
                    return self.keyed_cells().read_all(session.as_mut(), cell).await;
                }
                other => other.sql()?,
            };
            let query = match session.dialect() {
                // It looks for rows by their keys only.
                Dialect::Cql => "SELECT w FROM holdfast_iot".to_owned(),
                _ => format!("SELECT w FROM holdfast_iot WHERE w <> {LOADED}"),
            };
            read_all(session, &query, |rows, row, cells| {
                let write = rows.integer(row, 0)?.cast_unsigned();
                cells.extend(Some((write, write)).filter(|_| write != LOADED));
                Some(())
            })
            .await
        })
    }
}

impl Iot {
    fn keyed_cells(&self) -> KeyedCells {
        KeyedCells { folder: series::FOLDER, text_bytes: series::BESIDE_DATA + self.data.1 }
    }

    async fn load_series(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let writes = &|cycle: u64, rng: &mut ChaCha8Rng, writes: &mut Vec<Operation>| {
            let drawn = self.of_cycle(cycle, LOADED, rng);
            writes.push(series::write_of(&Drawn { data: self.draw_data(rng), ..drawn }));
        };
        let rows = RowsToLoad { table: "iot", rows: self.preload, cells_per_row: 1, writes };
        self.keyed_cells().set_up(setup, rows).await
    }

    async fn perform_by_key(
        &self,
        kind: usize,
        drawn: &Drawn,
        session: &mut dyn KeyValueSession,
    ) -> Result<(), SessionError> {
        if kind == READ {
            return series::read_newest(session, drawn, self.limit).await;
        }
        session.transact(vec![series::write_of(drawn)]).await.map(drop)
    }

    fn draw_data(&self, rng: &mut impl Rng) -> String {
        let mut data = Vec::new();
        push_alphanumeric_of(rng, self.data.0..=self.data.1, &mut data);
        String::from_utf8(data).unwrap_or_default()
    }

    async fn load(
        &self,
        session: &mut (dyn SqlSession + '_),
        mut cycles: std::ops::Range<u64>,
        loading: &Loading<'_>,
    ) -> Result<(), SessionError> {
        let wanted = cycles.end.saturating_sub(cycles.start);
        let mut rng = ChaCha8Rng::seed_from_u64(cycles.start);
        let dialect = session.dialect();
        let mut fill = |lines: &mut Vec<u8>| {
            for cycle in loading.next_rows(&mut cycles, 50) {
                let Drawn { machine, sensor, time_ms, value, station, .. } =
                    self.of_cycle(cycle, LOADED, &mut rng);
                let seconds = time_ms / 1_000 - BEGIN_MS / 1_000;
                // The bulk format wants a date: the beginning and the time since then, as an interval cannot be added there.
                let time = time_of_day(dialect, seconds, time_ms % 1_000);
                // Writing into memory cannot fail.
                let _ = write!(lines, "{machine}\t{sensor}\t{time}\t{value}\t{station}\t{LOADED}\t");
                let length = rng.random_range(self.data.0..=self.data.1);
                push_alphanumeric(&mut rng, length, lines);
                lines.push(b'\n');
            }
            !cycles.is_empty()
        };
        let columns = "machine_id, sensor_name, time, sensor_value, station_id, w, data";
        let load = BulkLoad { table: "holdfast_iot", columns, is_new: false };
        let loaded = session.load(load, &mut fill).await?;
        if loaded == wanted {
            Ok(())
        } else {
            Err(refused(format!("{loaded} of {wanted} values were loaded")))
        }
    }
}

/// The statement that makes the table. In the standard's SQL it has no form, and never gets here.
fn table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres | Dialect::Standard => {
            "CREATE TABLE holdfast_iot (machine_id uuid, sensor_name text, time timestamptz, \
             sensor_value float8 NOT NULL, station_id uuid NOT NULL, data text NOT NULL, w bigint NOT NULL, \
             PRIMARY KEY (machine_id, sensor_name, time))"
        }
        Dialect::Mysql => {
            "CREATE TABLE holdfast_iot (machine_id char(36) CHARACTER SET ascii, \
             sensor_name varchar(64) CHARACTER SET ascii, time datetime(3), sensor_value double NOT NULL, \
             station_id char(36) CHARACTER SET ascii NOT NULL, data longtext NOT NULL, w bigint NOT NULL, \
             PRIMARY KEY (machine_id, sensor_name, time))"
        }
        // As NoSQLBench makes it: the newest value of a sensor comes first.
        Dialect::Cql => {
            "CREATE TABLE holdfast_iot (machine_id uuid, sensor_name text, time timestamp, sensor_value double, \
             station_id uuid, data text, w bigint, PRIMARY KEY ((machine_id, sensor_name), time)) \
             WITH CLUSTERING ORDER BY (time DESC)"
        }
    }
}

/// A moment so many seconds and milliseconds after [`BEGIN_MS`], as the database reads it: a day and a time. PostgreSQL
/// knows Julian days; MySQL counts the days of its year, and years.
fn time_of_day(dialect: Dialect, seconds: u64, milliseconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}.{milliseconds:03}", rest / 3_600, rest / 60 % 60, rest % 60);
    match dialect {
        // 2020-01-01 is Julian day 2,458,850.
        Dialect::Postgres | Dialect::Standard => format!("J{} {time}+00", 2_458_850 + days),
        Dialect::Cql => (BEGIN_MS + seconds * 1_000 + milliseconds).to_string(),
        Dialect::Mysql => {
            let (year, month, day) = date(days);
            format!("{year}-{month:02}-{day:02} {time}")
        }
    }
}

/// The date so many days after 2020-01-01, in the Gregorian calendar.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 2020;
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        (year, days) = (year + 1, days - length);
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        (month, days) = (month + 1, days - length);
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::distribution::chi_square;

    fn iot(options: &[(&str, &str)]) -> Iot {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Iot::configured(&options).expect("fits")
    }

    #[test]
    fn both_mixes_of_the_report_come_as_asked() {
        for (written, share) in [("90%", 0.9), ("50%", 0.5)] {
            let iot = iot(&[("write", written), ("data_min", "1"), ("data_max", "1")]);
            let mut client = ClientState::new(1, 1, ChaCha8Rng::seed_from_u64(1));
            chi_square::check(written, &[share, 1.0 - share], 20_000, |_| iot.draw(&mut client).kind);
        }
    }

    #[test]
    fn no_two_cycles_write_the_same_row_and_cardinalities_are_as_asked() {
        let iot = iot(&[("machines", "7"), ("sensors", "3"), ("stations", "2")]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn: Vec<Drawn> = (0..2_000).map(|cycle| iot.of_cycle(cycle, 1, &mut rng)).collect();
        let keys: BTreeSet<_> = drawn.iter().map(|one| (&one.machine, &one.sensor, one.time_ms)).collect();
        assert_eq!(keys.len(), drawn.len());
        let count = |pick: fn(&Drawn) -> &String| drawn.iter().map(pick).collect::<BTreeSet<_>>().len();
        assert_eq!(
            [count(|one| &one.machine), count(|one| &one.sensor), count(|one| &one.station)],
            [7, 3, 2]
        );
    }

    #[test]
    fn values_are_normally_distributed_around_a_hundred() {
        let iot = iot(&[]);
        // Shares of a normal distribution between -2, -1, 0, 1, 2 deviations.
        let shares = [0.022_750, 0.135_905, 0.341_345, 0.341_345, 0.135_905, 0.022_750];
        chi_square::check("values", &shares, 50_000, |rng| {
            let deviations = (iot.of_cycle(1, 1, rng).value - 100.0) / 5.0;
            (deviations.floor().clamp(-3.0, 2.0) + 3.0) as usize
        });
    }

    #[test]
    fn identifiers_are_those_of_the_database_and_differ() {
        assert_eq!(uuid(5, 1).len(), 36);
        let all: BTreeSet<String> =
            (0..1_000).flat_map(|number| [uuid(number, 1), uuid(number, 2)]).collect();
        assert_eq!(all.len(), 2_000);
    }

    #[test]
    fn loaded_times_are_written_as_days_and_times() {
        let check = |seconds: u64, milliseconds: u64, postgres: &str, mysql: &str| {
            let since_1970_ms = (BEGIN_MS + seconds * 1_000 + milliseconds).to_string();
            assert_eq!(time_of_day(Dialect::Cql, seconds, milliseconds), since_1970_ms);
            assert_eq!(time_of_day(Dialect::Postgres, seconds, milliseconds), postgres);
            assert_eq!(time_of_day(Dialect::Mysql, seconds, milliseconds), mysql);
        };
        check(0, 0, "J2458850 00:00:00.000+00", "2020-01-01 00:00:00.000");
        check(86_400 + 3_661, 250, "J2458851 01:01:01.250+00", "2020-01-02 01:01:01.250");
        assert_eq!(
            [59, 60, 365, 366, 1_155].map(date),
            [(2020, 2, 29), (2020, 3, 1), (2020, 12, 31), (2021, 1, 1), (2023, 3, 1)]
        );
    }
}
