//! Moves of a client to another address or port → rows of docs/tables.md.
//!
//! In: a move, as `udp` has it. Out: one value per column.

use crate::stream::Moment;
use crate::tables::ClientMoveRow;
use crate::udp::Move;

/// The row of a move.
pub fn client_move(stream: i32, moved: &Move) -> ClientMoveRow {
    let Move { seen, before, after, unanswered, answered, challenge, response } = moved;
    let frame = |moment: &Option<Moment>| moment.map(|moment| moment.frame().cast_signed());
    let at = |moment: &Option<Moment>| moment.map(|moment| moment.at);
    ClientMoveRow {
        stream: Some(stream),
        frame: Some(seen.frame().cast_signed()),
        moved_at: Some(seen.at),
        old_ip: Some(before.ip),
        old_port: Some(before.port.into()),
        new_ip: Some(after.ip),
        new_port: Some(after.port.into()),
        unanswered_frame: frame(unanswered),
        unanswered_at: at(unanswered),
        answered_frame: frame(answered),
        answered_at: at(answered),
        challenge_frame: frame(challenge),
        challenge_at: at(challenge),
        response_frame: frame(response),
        response_at: at(response),
    }
}
