//! A session that is ready for a workload: its statements are known to it.
//!
//! Owns their preparation. Where the session comes from is the caller's.

use client::{Connected, Session, SessionError, StatementId};

use crate::shared::Shared;

/// A session and the workload's statements as it knows them.
pub(crate) type Ready = (Connected, Vec<Option<StatementId>>);

/// The workload's statements as they are known to a session of SQL; on others a workload needs none.
pub(crate) async fn prepare(
    shared: &Shared,
    session: &mut Session,
) -> Result<Vec<Option<StatementId>>, SessionError> {
    let Session::Sql(session) = session else { return Ok(Vec::new()) };
    let dialect = session.dialect();
    let texts = shared.workload.statements().iter().map(|statement| statement.text(dialect));
    let run: Vec<&str> = texts.clone().flatten().collect();
    let mut prepared = session.prepare(&run).await?.into_iter();
    Ok(texts.map(|text| text.and_then(|_| prepared.next())).collect())
}
