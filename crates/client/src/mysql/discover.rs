//! How a server of MySQL's protocol is asked whether it takes writes.
//!
//! Owns the question. Which server is asked, when and how often is `leader_search`'s business.

use std::time::Duration;

use history::ErrorClass;

use super::{MysqlClient, Settings};
use crate::connection::SessionError;
use crate::endpoint::{Address, Endpoint};
use crate::frames::failure;
use crate::leader_search::{Ask, LeaderSearch};
use crate::session::Session;
use crate::{Rows, SqlSession as _};

/// Connects to a server that takes writes. Shared by all clients of a load.
pub type MysqlConnector = LeaderSearch<AskMysql>;

/// An attempt at one server.
pub struct AskMysql(Settings);

impl Ask for AskMysql {
    type Opened = MysqlClient;

    fn session(opened: MysqlClient) -> Session {
        Session::of_sql(opened)
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<(MysqlClient, bool), SessionError> {
        let Address::Tcp { address, .. } = endpoint.address else {
            let message = format!("{}: a MySQL server is spoken to over TCP", endpoint.address);
            return Err(failure(ErrorClass::Connection, true, message));
        };
        let mut client = MysqlClient::open(address, &self.0).await?;
        // The attempt has a limit as a whole.
        client.line.timeout = Duration::MAX;
        // SHOW is answered by a node of Galera that is outside the primary component as well; SELECT is not.
        let settings =
            client.batch("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'wsrep_on')").await?;
        let wsrep = client.batch("SHOW GLOBAL STATUS WHERE Variable_name = 'wsrep_ready'").await?;
        client.line.timeout = self.0.timeout;
        let takes_writes = takes_writes(&settings, &wsrep);
        Ok((client, takes_writes))
    }
}

/// Whether a server takes writes by its own word. Without Galera there is nothing to be ready.
fn takes_writes(settings: &Rows, wsrep: &Rows) -> bool {
    let is_on = |rows: &Rows, name: &str| {
        let row = (0..rows.len()).find(|row| rows.text(*row, 0) == Some(name));
        row.and_then(|row| rows.text(row, 1)) == Some("ON")
    };
    !is_on(settings, "read_only") && (!is_on(settings, "wsrep_on") || is_on(wsrep, "wsrep_ready"))
}

impl MysqlConnector {
    /// To one server for all clients, as a database with one primary has it.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        let connect_timeout = settings.connect_timeout;
        Self::asking(AskMysql(settings), endpoints, connect_timeout)
    }

    /// To all servers that take writes, client by client in turn, as Galera's nodes do.
    #[must_use]
    pub fn spread(endpoints: Vec<Endpoint>, settings: Settings) -> Self {
        Self::new(endpoints, settings).spread_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Rows {
        let mut rows = Rows::default();
        for (name, value) in pairs {
            rows.begin_row(2);
            rows.push_cell(Some(name.as_bytes()));
            rows.push_cell(Some(value.as_bytes()));
        }
        rows
    }

    #[test]
    fn a_node_takes_writes_unless_it_is_read_only_or_outside_its_group() {
        let check = |read_only: &str, wsrep_on: &str, ready: &str, expected: bool| {
            let settings = rows(&[("read_only", read_only), ("wsrep_on", wsrep_on)]);
            assert_eq!(takes_writes(&settings, &rows(&[("wsrep_ready", ready)])), expected);
        };
        check("OFF", "OFF", "OFF", true);
        check("ON", "OFF", "OFF", false);
        check("OFF", "ON", "ON", true);
        check("OFF", "ON", "OFF", false);
        // MySQL has no such words.
        assert!(takes_writes(&rows(&[("read_only", "OFF")]), &Rows::default()));
    }
}
