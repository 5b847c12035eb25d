//! Who owns the ends of a connection, in its row. In: the row, what comments told. Out: the row.

use crate::owners::{Owner, Owners};
use crate::stream::Side;
use crate::tables::ConnectionRow;

/// The same row, with who owns the ends.
pub fn owned<'a>(row: ConnectionRow<'a>, owners: &'a Owners) -> ConnectionRow<'a> {
    let (client, server) = (owners.of(Side::Client), owners.of(Side::Server));
    let text = |owner: Option<&'a Owner>, of: fn(&Owner) -> &Option<Box<str>>| owner.and_then(|one| of(one).as_deref());
    ConnectionRow {
        client_pid: client.and_then(|owner| owner.pid),
        client_process: text(client, |owner| &owner.process),
        client_container: text(client, |owner| &owner.container),
        client_container_id: text(client, |owner| &owner.container_id),
        client_pod: text(client, |owner| &owner.pod),
        server_pid: server.and_then(|owner| owner.pid),
        server_process: text(server, |owner| &owner.process),
        server_container: text(server, |owner| &owner.container),
        server_container_id: text(server, |owner| &owner.container_id),
        server_pod: text(server, |owner| &owner.pod),
        ..row
    }
}
