//! conchart's native core: capture file → packets → TCP connections → TLS handshakes → exchanges
//! → phases, in one streaming pass. The folder listing is the data flow; a stage imports only
//! earlier stages.

pub mod capture;
pub mod error;
pub mod exchange;
pub mod packet;
pub mod stream;
pub mod tls;
