//! Rows → Arrow. One builder per table of docs/tables.md; column order is the order here.
//!
//! In: plain rows. Out: record batches of bounded size, handed to a [`Sink`] as they fill.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// Values per batch: enough to make the hand-over cheap, few enough that batches on their way cost little memory.
const BATCH_VALUES: usize = 1 << 17;
/// Room for this much text per value in columns that need not grow.
const TEXT_BYTES: usize = 16;

/// Takes finished batches.
pub trait Sink {
    /// # Errors
    /// When the receiving end is gone; the run stops.
    fn batch(&mut self, table: &'static str, batch: RecordBatch) -> Result<(), Stopped>;
}

/// The receiving end wants no more rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stopped;

macro_rules! column {
    (value Int32 $a:lifetime) => { Option<i32> };
    (value Int64 $a:lifetime) => { Option<i64> };
    (value Float $a:lifetime) => { Option<f64> };
    (value Bool $a:lifetime) => { Option<bool> };
    (value Text $a:lifetime) => { Option<&$a str> };
    (value Texts $a:lifetime) => { &$a [String] };
    (builder Int32) => { Int32Builder };
    (builder Int64) => { Int64Builder };
    (builder Float) => { Float64Builder };
    (builder Bool) => { BooleanBuilder };
    (builder Text) => { StringBuilder };
    (builder Texts) => { ListBuilder<StringBuilder> };
    (sized Int32) => { Int32Builder::with_capacity(Self::ROWS) };
    (sized Int64) => { Int64Builder::with_capacity(Self::ROWS) };
    (sized Float) => { Float64Builder::with_capacity(Self::ROWS) };
    (sized Bool) => { BooleanBuilder::with_capacity(Self::ROWS) };
    (sized Text) => { StringBuilder::with_capacity(Self::ROWS, Self::ROWS * TEXT_BYTES) };
    (sized Texts) => { ListBuilder::default() };
    (append Texts $builder:expr, $value:expr) => {
        $builder.append_value($value.iter().map(Some))
    };
    (append $kind:ident $builder:expr, $value:expr) => { $builder.append_option($value) };
    (type Int32) => { DataType::Int32 };
    (type Int64) => { DataType::Int64 };
    (type Float) => { DataType::Float64 };
    (type Bool) => { DataType::Boolean };
    (type Text) => { DataType::Utf8 };
    (type Texts) => { DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))) };
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident of $row:ident as $name:literal { $($field:ident: $kind:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $row<'a> { $(pub $field: column!(value $kind 'a)),* }

        /// Builder of the table.
        #[derive(Debug)]
        struct $table { schema: SchemaRef, rows: usize, $($field: column!(builder $kind)),* }

        impl $table {
            const NAME: &'static str = $name;
            /// Rows per batch.
            const ROWS: usize = BATCH_VALUES / [$(stringify!($field)),*].len();

            fn new() -> Self {
                let fields = vec![$(Field::new(stringify!($field), column!(type $kind), true)),*];
                Self { schema: Arc::new(Schema::new(fields)), rows: 0, $($field: Default::default()),* }
            }

            fn push(&mut self, row: $row<'_>) {
                self.rows += 1;
                $(column!(append $kind self.$field, row.$field);)*
            }

            fn take(&mut self) -> Result<RecordBatch, ArrowError> {
                let columns: Vec<ArrayRef> = vec![$(Arc::new(self.$field.finish())),*];
                // A table that filled a batch will fill another: its columns need not grow once more.
                if self.rows >= Self::ROWS {
                    $(self.$field = column!(sized $kind);)*
                }
                self.rows = 0;
                RecordBatch::try_new(self.schema.clone(), columns)
            }
        }
    };
}

table! {
    /// One capture file.
    Captures of Capture as "captures" {
        capture: Int32, path: Text, format: Text, link_types: Text, packets: Int64, selected: Int64,
        bytes: Int64, first_frame: Int64, first_at: Int64, last_at: Int64, resolution_ns: Int64,
        truncated: Bool, undecodable: Int64, other: Int64, snapped: Int64, dropped: Int64,
        duplicates: Int64, notes: Texts,
    }
}
table! {
    /// One TCP connection or UDP conversation.
    Connections of Connection as "connections" {
        stream: Int32, capture: Int32, transport: Text, transport_stream: Int32, client_ip: Text, client_port: Int32, server_ip: Text,
        server_port: Int32, opened_at: Int64, closed_at: Int64, syn_at: Int64, syn_ack_at: Int64,
        ack_at: Int64, syn_retransmits: Int32, first_frame: Int64, last_frame: Int64,
        packets_client: Int64, packets_server: Int64, bytes_client: Int64, bytes_server: Int64,
        retransmits_client: Int32, retransmits_server: Int32, out_of_order_client: Int32,
        out_of_order_server: Int32, zero_windows_client: Int32, zero_windows_server: Int32,
        missing_client: Int64, missing_server: Int64, mss_client: Int32, mss_server: Int32,
        ttl_client: Int32, ttl_server: Int32,
        rtt_client_ns: Int64, rtt_server_ns: Int64, fin_by: Text, rst_by: Text, state: Text,
        app: Text,
    }
}
table! {
    /// One TLS handshake.
    Handshakes of Handshake as "handshakes" {
        stream: Int32, number: Int32, hello_at: Int64, server_hello_at: Int64, server_done_at: Int64,
        client_finished_at: Int64, ready_at: Int64, complete_at: Int64, version: Text, cipher: Text,
        named_group: Text, sni: Text, alpn: Text, alpn_offered: Text, quic_version: Text, kind: Text, outcome: Text, hello_retry: Bool,
        client_auth: Bool, early_data: Bool, false_start: Bool, alert: Text, certificates: Int32,
        certificate_bytes: Int32, bytes_client: Int64, bytes_server: Int64, round_trips: Int32,
        client_compute_ns: Int64, server_compute_ns: Int64, ech: Bool, ja3: Text, ja4: Text, inferred: Bool,
        keys: Text, missing_keys: Text,
    }
}
table! {
    /// One request and its response.
    Exchanges of Exchange as "exchanges" {
        stream: Int32, number: Int32, request_at: Int64, request_done_at: Int64, response_at: Int64,
        response_done_at: Int64, protocol: Text, method: Text, host: Text, target: Text, status: Int32,
        request_bytes: Int64, response_bytes: Int64, request_frame: Int64, response_frame: Int64,
        request_ns: Int64, wait_ns: Int64, transfer_ns: Int64, service_ns: Int64, client_keepalive: Bool,
        server_keepalive: Bool, inferred: Bool, confidence: Float,
    }
}
table! {
    /// One stretch of a connection.
    Phases of Phase as "phases" {
        stream: Int32, exchange: Int32, kind: Text, start_at: Int64, end_at: Int64, start_frame: Int64,
        end_frame: Int64, inferred: Bool,
    }
}
table! {
    /// One TCP segment or UDP datagram.
    Packets of Packet as "packets" {
        stream: Int32, frame: Int64, seen_at: Int64, sender: Text, flags: Text, bytes: Int32, mark: Text,
    }
}

/// Collects rows of all tables and passes them on in batches.
#[derive(Debug)]
pub struct Rows<S> {
    sink: S,
    captures: Captures,
    connections: Connections,
    handshakes: Handshakes,
    exchanges: Exchanges,
    phases: Phases,
    packets: Packets,
}

macro_rules! add {
    ($($method:ident($row:ident) => $table:ident: $builder:ident);* $(;)?) => {
        $(
            /// Adds a row.
            ///
            /// # Errors
            /// [`Stopped`] when a batch does not fit its schema, or the sink wants no more.
            pub fn $method(&mut self, row: $row<'_>) -> Result<(), Stopped> {
                self.$table.push(row);
                if self.$table.rows >= $builder::ROWS {
                    let batch = self.$table.take().map_err(|_| Stopped)?;
                    self.sink.batch($builder::NAME, batch)?;
                }
                Ok(())
            }
        )*

        /// Hands over what is left.
        ///
        /// # Errors
        /// [`Stopped`] when a batch does not fit its schema, or the sink wants no more.
        pub fn flush(&mut self) -> Result<(), Stopped> {
            $(
                if self.$table.rows > 0 {
                    let batch = self.$table.take().map_err(|_| Stopped)?;
                    self.sink.batch($builder::NAME, batch)?;
                }
            )*
            Ok(())
        }
    };
}

impl<S: Sink> Rows<S> {
    /// Empty tables in front of `sink`.
    pub fn new(sink: S) -> Self {
        Self {
            sink,
            captures: Captures::new(),
            connections: Connections::new(),
            handshakes: Handshakes::new(),
            exchanges: Exchanges::new(),
            phases: Phases::new(),
            packets: Packets::new(),
        }
    }

    /// The sink, for what is not a row.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    add! {
        capture(Capture) => captures: Captures;
        connection(Connection) => connections: Connections;
        handshake(Handshake) => handshakes: Handshakes;
        exchange(Exchange) => exchanges: Exchanges;
        phase(Phase) => phases: Phases;
        packet(Packet) => packets: Packets;
    }
}
