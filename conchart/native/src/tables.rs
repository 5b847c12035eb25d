//! Rows → Arrow. One builder per table of docs/tables.md; column order is the order here.
//!
//! In: rows, one value per column. Out: record batches of bounded size, kept until they are taken. A column is declared
//! here and nowhere else: `store/schema.py` asks for [`DECLARED`].

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::bytes::hex_digits;
use crate::dictionary::WordBuilder;
use crate::exchange::{QueryShape, StatusText};
use crate::packet::{Flags, Mac, OptionKinds};

/// Values per batch: few enough that batches on their way cost little memory, enough to make the hand-over cheap. DuckDB
/// takes one to two milliseconds to plan an INSERT.
const BATCH_VALUES: usize = 1 << 19;
/// Room for this much text per value in columns that need not grow.
const TEXT_BYTES: usize = 16;

macro_rules! column {
    (value Int32 $a:lifetime) => { Option<i32> };
    (value Int64 $a:lifetime) => { Option<i64> };
    (value Float $a:lifetime) => { Option<f64> };
    (value Bool $a:lifetime) => { Option<bool> };
    (value Text $a:lifetime) => { Option<&$a str> };
    (value Word $a:lifetime) => { Option<&'static str> };
    (value Texts $a:lifetime) => { &$a [String] };
    (value MaybeTexts $a:lifetime) => { Option<&$a [String]> };
    (value Address $a:lifetime) => { Option<IpAddr> };
    (value Bytes $a:lifetime) => { Option<&$a [u8]> };
    (value Letters $a:lifetime) => { Option<Flags> };
    (value Kinds $a:lifetime) => { Option<OptionKinds> };
    (value Station $a:lifetime) => { Option<Mac> };
    (value Status $a:lifetime) => { Option<StatusText> };
    (value Query $a:lifetime) => { Option<QueryShape<$a>> };
    (value Random $a:lifetime) => { Option<&$a [u8; 32]> };
    (builder Word) => { WordBuilder };
    (builder $kind:ident) => { Sparse<column!(dense $kind)> };
    (dense Int32) => { Int32Builder };
    (dense Int64) => { Int64Builder };
    (dense Float) => { Float64Builder };
    (dense Bool) => { BooleanBuilder };
    (dense Bytes) => { BinaryBuilder };
    (dense Texts) => { ListBuilder<StringBuilder> };
    (dense MaybeTexts) => { ListBuilder<StringBuilder> };
    (dense $text:ident) => { StringBuilder };
    (sized Int32) => { Int32Builder::with_capacity(Self::ROWS) };
    (sized Int64) => { Int64Builder::with_capacity(Self::ROWS) };
    (sized Float) => { Float64Builder::with_capacity(Self::ROWS) };
    (sized Bool) => { BooleanBuilder::with_capacity(Self::ROWS) };
    (sized Bytes) => { BinaryBuilder::default() };
    (sized Texts) => { ListBuilder::default() };
    (sized MaybeTexts) => { ListBuilder::default() };
    (sized $text:ident) => { StringBuilder::with_capacity(Self::ROWS, Self::ROWS * TEXT_BYTES) };
    (finish Word $builder:expr) => { $builder.finish() };
    (finish $kind:ident $column:expr) => { Arc::new($column.settled().finish()) };
    (words Word $builder:expr) => { Some($builder.words()) };
    (words $kind:ident $builder:expr) => { None };
    (sized Word $builder:expr) => { WordBuilder::with_words($builder.words(), Self::ROWS) };
    (sized $kind:ident $column:expr) => {
        // What stayed empty once is likely to stay so.
        if $column.has_values { Sparse { dense: column!(sized $kind), ..Sparse::default() } } else { Sparse::default() }
    };
    (reset Word $builder:expr) => {};
    (reset $kind:ident $column:expr) => { $column.has_values = false };
    (empty Word $builder:expr) => { false };
    (empty $kind:ident $column:expr) => { !$column.has_values };
    (append Word $builder:expr, $value:expr) => { $builder.append_option($value) };
    (append Texts $column:expr, $value:expr) => { column!(append MaybeTexts $column, Some($value)) };
    (append $kind:ident $column:expr, $value:expr) => {
        match $value {
            None => $column.absent += 1,
            Some(value) => column!(put $kind $column.present(), value),
        }
    };
    (put MaybeTexts $builder:expr, $value:expr) => { $builder.append_value($value.iter().map(Some)) };
    (put Address $builder:expr, $value:expr) => { append_text($builder, $value, address) };
    (put Station $builder:expr, $value:expr) => { append_text($builder, $value, mac) };
    (put Random $builder:expr, $value:expr) => { append_text($builder, $value, hex) };
    (put Status $builder:expr, $value:expr) => { append_text($builder, $value, |into, text| text.write(into)) };
    (put Query $builder:expr, $value:expr) => { append_text($builder, $value, |into, shape| shape.write(into)) };
    (put Letters $builder:expr, $value:expr) => { append_text($builder, $value, letters) };
    (put Kinds $builder:expr, $value:expr) => { append_text($builder, $value, kinds) };
    (put $kind:ident $builder:expr, $value:expr) => { $builder.append_value($value) };
    (type Int32) => { DataType::Int32 };
    (type Int64) => { DataType::Int64 };
    (type Float) => { DataType::Float64 };
    (type Bool) => { DataType::Boolean };
    (type Bytes) => { DataType::Binary };
    (type Word) => { DataType::UInt8 };
    (type Texts) => { DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))) };
    (type MaybeTexts) => { column!(type Texts) };
    (type $text:ident) => { DataType::Utf8 };
    (sql Int32) => { "INTEGER" };
    (sql Int64) => { "BIGINT" };
    (sql Float) => { "DOUBLE" };
    (sql Bool) => { "BOOLEAN" };
    (sql Bytes) => { "BLOB" };
    (sql Texts) => { "VARCHAR[]" };
    (sql MaybeTexts) => { "VARCHAR[]" };
    (sql Word $words:ident) => { stringify!($words) };
    (sql $text:ident) => { "VARCHAR" };
}

macro_rules! table {
    ($(#[$doc:meta])* $table:ident of $row:ident as $($rest:tt)*) => {
        table! { @ ($(#[$doc])*) $table of $row () 'static as $($rest)* }
    };
    ($(#[$doc:meta])* $table:ident of $row:ident<$a:lifetime> as $($rest:tt)*) => {
        table! { @ ($(#[$doc])*) $table of $row (<$a>) $a as $($rest)* }
    };
    (@ ($(#[$doc:meta])*) $table:ident of $row:ident ($($of:tt)*) $a:lifetime as $name:literal {
        $($field:ident: $kind:ident $(of $words:ident)?),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct $row $($of)* { $(pub $field: column!(value $kind $a)),* }

        /// Builder of the table.
        #[derive(Debug)]
        struct $table { schema: SchemaRef, rows: usize, $($field: column!(builder $kind)),* }

        impl $table {
            const NAME: &'static str = $name;
            /// Name and type of each column, as SQL; of words, the vocabulary.
            const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), column!(sql $kind $($words)?))),*];
            /// Rows per batch.
            const ROWS: usize = BATCH_VALUES / [$(stringify!($field)),*].len();

            fn new() -> Self {
                let fields = vec![$(Field::new(stringify!($field), column!(type $kind), true)),*];
                Self { schema: Arc::new(Schema::new(fields)), rows: 0, $($field: Default::default()),* }
            }

            fn push(&mut self, row: $row) {
                self.rows += 1;
                $(column!(append $kind self.$field, row.$field);)*
            }

            fn take(&mut self) -> Result<Filled, ArrowError> {
                let empty = [$((stringify!($field), column!(empty $kind self.$field))),*];
                let columns: Vec<ArrayRef> = vec![$(column!(finish $kind self.$field)),*];
                let words = [$((stringify!($field), column!(words $kind self.$field))),*];
                // A table that filled a batch will fill another: its columns need not grow once more.
                if self.rows >= Self::ROWS {
                    $(self.$field = column!(sized $kind self.$field);)*
                } else {
                    $(column!(reset $kind self.$field);)*
                }
                self.rows = 0;
                Ok(Filled {
                    table: Self::NAME,
                    rows: RecordBatch::try_new(self.schema.clone(), columns)?,
                    words: words.into_iter().filter_map(|(column, words)| Some((column, words?))).collect(),
                    empty: empty.into_iter().filter_map(|(column, is_empty)| is_empty.then_some(column)).collect(),
                })
            }
        }
    };
}

/// A batch of rows of one table.
#[derive(Debug)]
pub struct Filled {
    pub table: &'static str,
    pub rows: RecordBatch,
    /// Of each column of words: the words, whose numbers are in the rows.
    pub words: Vec<(&'static str, Vec<&'static str>)>,
    /// Columns that have no value in any of the rows.
    pub empty: Vec<&'static str>,
}

/// A column in which many rows have no value: these are counted, and written together. Most protocols fill few columns.
#[derive(Debug, Default)]
struct Sparse<B> {
    dense: B,
    /// Rows without a value that are not in `dense` yet.
    absent: usize,
    /// Since the latest batch.
    has_values: bool,
}

impl<B: Absent> Sparse<B> {
    /// The builder, for a value of the next row.
    fn present(&mut self) -> &mut B {
        self.has_values = true;
        self.settled()
    }

    /// The builder, with all rows up to here.
    fn settled(&mut self) -> &mut B {
        if self.absent > 0 {
            self.dense.append_absent(std::mem::take(&mut self.absent));
        }
        &mut self.dense
    }
}

/// A builder that takes rows without a value.
trait Absent {
    fn append_absent(&mut self, rows: usize);
}

macro_rules! absent {
    ($($builder:ty),*) => {
        $(impl Absent for $builder {
            fn append_absent(&mut self, rows: usize) {
                self.append_nulls(rows);
            }
        })*
    };
}

absent!(
    Int32Builder,
    Int64Builder,
    Float64Builder,
    BooleanBuilder,
    BinaryBuilder,
    StringBuilder,
    ListBuilder<StringBuilder>
);

table! {
    /// One capture file.
    Captures of CaptureRow<'a> as "captures" {
        capture: Int32, path: Text, format: Text, link_types: Text,
        packets: Int64, selected: Int64, bytes: Int64, first_frame: Int64,
        first_at: Int64, last_at: Int64, resolution_ns: Int64,
        truncated: Bool, undecodable: Int64, other: Int64, snapped: Int64, dropped: Int64, duplicates: Int64,
        notes: Texts,
    }
}
table! {
    /// One TCP connection or UDP conversation.
    Connections of ConnectionRow<'a> as "connections" {
        stream: Int32, capture: Int32, transport: Word of TRANSPORT, transport_stream: Int32,
        client_ip: Address, client_port: Int32, server_ip: Address, server_port: Int32,
        opened_at: Int64, closed_at: Int64, opened_by: Word of SIDE, closed_by: Word of SIDE,
        syn_at: Int64, syn_ack_at: Int64, ack_at: Int64, syn_retransmits: Int32, syn_ack_retransmits: Int32,
        first_frame: Int64, last_frame: Int64,
        packets_client: Int64, packets_server: Int64, bytes_client: Int64, bytes_server: Int64,
        retransmits_client: Int32, retransmits_server: Int32,
        out_of_order_client: Int32, out_of_order_server: Int32,
        zero_windows_client: Int32, zero_windows_server: Int32,
        missing_client: Int64, missing_server: Int64,
        mss_client: Int32, mss_server: Int32,
        ttl_client: Int32, ttl_server: Int32,
        mac_client: Station, mac_server: Station, local_end: Word of SIDES,
        tunnel_client: Text, tunnel_server: Text, datagrams_client: Int64, datagrams_server: Int64,
        isn_client: Int64, isn_server: Int64, identity: Int64, announced_ip: Address, announced_port: Int32,
        rtt_client_ns: Int64, rtt_server_ns: Int64, least_rtt_client_ns: Int64, least_rtt_server_ns: Int64,
        fin_by: Word of SIDE, rst_by: Word of SIDE,
        fin_client_at: Int64, fin_server_at: Int64, fin_client_frame: Int64, fin_server_frame: Int64,
        rst_at: Int64, rst_frame: Int64, rst_ttl: Int32, rst_foreign: Bool,
        unacknowledged_client: Int64, unacknowledged_server: Int64, state: Word of STATE, app: Text, server_name: Text,
        client_pid: Int32, client_process: Text, client_container: Text, client_container_id: Text,
        client_pod: Text, server_pid: Int32, server_process: Text, server_container: Text,
        server_container_id: Text, server_pod: Text,
    }
}
table! {
    /// One TLS handshake.
    Handshakes of HandshakeRow<'a> as "handshakes" {
        stream: Int32, number: Int32,
        hello_at: Int64, server_hello_at: Int64, server_done_at: Int64, client_finished_at: Int64,
        ready_at: Int64, complete_at: Int64, hello_by: Word of SIDE, ready_by: Word of SIDE, complete_by: Word of SIDE,
        hello_frame: Int64, server_hello_frame: Int64, ready_frame: Int64, failed_frame: Int64,
        version: Text, version_offered: Text, cipher: Text, named_group: Text, sni: Text, alpn: Text,
        alpn_offered: Text, key_shares: Text, client_random: Random, quic_version: Text,
        parameters_client: MaybeTexts, parameters_server: MaybeTexts,
        retry_at: Int64, version_negotiation_at: Int64,
        kind: Word of SESSION, resumption_offered: Word of SESSION, early_data_offered: Bool,
        ticket_offered: Bool, ticket_issued: Bool, early_data_allowed: Bool, session_id_issued: Bool,
        outcome: Word of OUTCOME,
        hello_retry: Bool, client_auth: Bool, early_data: Bool, false_start: Bool,
        alert: Text, alert_by: Word of SIDE,
        certificates: Int32, certificate_bytes: Int32, client_certificate_bytes: Int32,
        client_hello_bytes: Int32, server_flight_bytes: Int32,
        bytes_client: Int64, bytes_server: Int64, round_trips: Int32,
        client_compute_ns: Int64, server_compute_ns: Int64, ech: Bool,
        ja3: Text, ja4: Text, inferred: Bool,
        keys: Word of COVERAGE, missing_keys: Text,
    }
}
table! {
    /// One request and its response.
    Exchanges of ExchangeRow<'a> as "exchanges" {
        stream: Int32, number: Int32,
        request_at: Int64, request_done_at: Int64, response_at: Int64, response_done_at: Int64,
        protocol: Text, kind: Word of KIND, store: Word of STORE, method: Text, host: Text, target: Text, shape: Query,
        status: Int32, status_text: Status,
        awaits: Word of AWAITS, dns_over: Word of DNS_OVER, dns_type: Text, dns_name: Text, dns_rcode: Int32,
        user_agent: Text, server_software: Text,
        ids: MaybeTexts, parent_span: Text, forwarded_for: Text, via: Text, alternatives: MaybeTexts,
        tunnel: Text, tunnel_done_at: Int64, tunnel_bytes_client: Int64, tunnel_bytes_server: Int64,
        tunnel_datagrams_client: Int64, tunnel_datagrams_server: Int64,
        expect_continue: Bool, continued_at: Int64, body_at: Int64,
        goaway_at: Int64, goaway_by: Word of SIDE, goaway_code: Text, goaway_text: Text, goaway_frame: Int64,
        goaway_pings: Int64,
        request_bytes: Int64, response_bytes: Int64, request_frame: Int64, response_frame: Int64,
        request_ns: Int64, wait_ns: Int64, transfer_ns: Int64,
        client_keepalive: Bool, server_keepalive: Bool,
        keep_alive_timeout_ns: Int64,
        outcome: Word of FATE, ended_by: Word of ENDER, ended_at: Int64, ended_frame: Int64,
        inferred: Bool, confidence: Float,
    }
}
table! {
    /// One message inside the content of an exchange.
    ExchangeMessages of ExchangeMessageRow as "exchange_messages" {
        stream: Int32, exchange: Int32, sender: Word of SIDE, number: Int32, kind: Word of CONTENT, compressed: Bool,
        bytes: Int64, start_at: Int64, end_at: Int64, start_frame: Int64, end_frame: Int64,
    }
}
table! {
    /// One stretch of a connection.
    Phases of PhaseRow as "phases" {
        stream: Int32, exchange: Int32, handshake: Int32, kind: Word of PHASE,
        start_at: Int64, end_at: Int64, start_by: Word of SIDE, end_by: Word of SIDE,
        start_frame: Int64, end_frame: Int64, inferred: Bool,
    }
}
table! {
    /// One stretch in which the next byte did not come.
    Stalls of StallRow as "stalls" {
        stream: Int32, kind: Word of STALL, detail: Word of DETAIL, side: Word of SIDE, start_at: Int64, end_at: Int64,
        start_by: Word of SIDE, end_by: Word of SIDE,
        start_frame: Int64, end_frame: Int64, released_frame: Int64, ack_delay_ns: Int64, confidence: Float,
        unfinished: Bool,
    }
}
table! {
    /// A packet of QUIC that its sender took for lost.
    LostPackets of LostPacketRow as "lost_packets" {
        stream: Int32, sender: Word of SIDE, space: Word of SPACE, number: Int64, frame: Int64, sent_at: Int64,
        reported_frame: Int64, reported_at: Int64, arrived: Bool,
    }
}
table! {
    /// A client of QUIC that went on from another endpoint.
    ClientMoves of ClientMoveRow as "client_moves" {
        stream: Int32, frame: Int64, moved_at: Int64, old_ip: Address, old_port: Int32, new_ip: Address,
        new_port: Int32, unanswered_frame: Int64, unanswered_at: Int64, answered_frame: Int64, answered_at: Int64,
        challenge_frame: Int64, challenge_at: Int64, response_frame: Int64, response_at: Int64,
    }
}
table! {
    /// A front exchange and a back exchange that it caused.
    Links of LinkRow as "links" {
        front_stream: Int32, front_exchange: Int32, back_stream: Int32, back_exchange: Int32,
        method: Text, confidence: Float,
        proxy_in_ns: Int64, connect_ns: Int64, tls_ns: Int64, request_ns: Int64, wait_ns: Int64, proxy_out_ns: Int64,
    }
}
table! {
    /// One TCP segment or UDP datagram.
    Packets of PacketRow<'a> as "packets" {
        stream: Int32, frame: Int64, seen_at: Int64, sender: Word of SIDE, flags: Letters, bytes: Int32,
        mark: Word of MARK,
        seq: Int64, ack: Int64, window_bytes: Int64, segment: Bytes,
    }
}
table! {
    /// One packet, with what tells it from others.
    PlacePackets of PlacePacketRow as "place_packets" {
        stream: Int32, frame: Int64, seen_at: Int64, sender: Word of SIDE, flags: Letters, bytes: Int32,
        seq: Int64, ack: Int64, print: Int64, ip_id: Int32, ttl: Int32, window_scale: Int32,
        mss: Int32, options: Kinds, tos: Int32,
    }
}
table! {
    /// One TLS record.
    Records of RecordRow<'a> as "records" {
        stream: Int32, number: Int32, sender: Word of SIDE, kind: Text, bytes: Int32, cover: Word of COVER,
        start_at: Int64, end_at: Int64, start_frame: Int64, end_frame: Int64,
    }
}
table! {
    /// One TLS handshake message.
    Messages of MessageRow<'a> as "messages" {
        stream: Int32, number: Int32, handshake: Int32, sender: Word of SIDE, kind: Text, code: Int32,
        bytes: Int32, start_at: Int64, end_at: Int64, start_frame: Int64, end_frame: Int64, opened: Bool,
        body: Bytes,
    }
}
table! {
    /// One frame of QUIC, with its packet.
    QuicFrames of QuicFrameRow<'a> as "quic_frames" {
        stream: Int32, frame: Int64, packet: Int32, number: Int32, seen_at: Int64, sender: Word of SIDE,
        packet_type: Text, packet_number: Int64, packet_bytes: Int32, kind: Text, stream_id: Int64,
        start_byte: Int64, bytes: Int64, fin: Bool, value: Int64, text: Text,
    }
}
table! {
    /// One frame of HTTP/3.
    Http3Frames of Http3FrameRow<'a> as "http3_frames" {
        stream: Int32, sender: Word of SIDE, stream_id: Int64, start_byte: Int64, kind: Text, bytes: Int64,
        frame: Int64, seen_at: Int64, text: Text,
    }
}

/// A table, and name and type of each of its columns.
pub type Declared = (&'static str, &'static [(&'static str, &'static str)]);

/// What is declared here.
pub const DECLARED: &[Declared] = &[
    (Captures::NAME, Captures::COLUMNS),
    (Connections::NAME, Connections::COLUMNS),
    (Handshakes::NAME, Handshakes::COLUMNS),
    (Exchanges::NAME, Exchanges::COLUMNS),
    (ExchangeMessages::NAME, ExchangeMessages::COLUMNS),
    (Phases::NAME, Phases::COLUMNS),
    (Stalls::NAME, Stalls::COLUMNS),
    (LostPackets::NAME, LostPackets::COLUMNS),
    (ClientMoves::NAME, ClientMoves::COLUMNS),
    (Links::NAME, Links::COLUMNS),
    (Packets::NAME, Packets::COLUMNS),
    (PlacePackets::NAME, PlacePackets::COLUMNS),
    (Records::NAME, Records::COLUMNS),
    (Messages::NAME, Messages::COLUMNS),
    (QuicFrames::NAME, QuicFrames::COLUMNS),
    (Http3Frames::NAME, Http3Frames::COLUMNS),
];

/// All tables of a trace, as far as they are not taken yet.
#[derive(Debug)]
pub struct Tables {
    captures: Captures,
    connections: Connections,
    handshakes: Handshakes,
    exchanges: Exchanges,
    exchange_messages: ExchangeMessages,
    phases: Phases,
    stalls: Stalls,
    lost_packets: LostPackets,
    client_moves: ClientMoves,
    links: Links,
    packets: Packets,
    place_packets: PlacePackets,
    records: Records,
    messages: Messages,
    quic_frames: QuicFrames,
    http3_frames: Http3Frames,
    finished: Vec<Filled>,
}

macro_rules! add {
    ($($method:ident($row:ident) => $table:ident: $builder:ident);* $(;)?) => {
        $(
            /// Adds a row.
            ///
            /// # Errors
            /// As [`Self::flush`].
            pub(crate) fn $method(&mut self, row: $row) -> Result<(), ArrowError> {
                self.$table.push(row);
                if self.$table.rows >= $builder::ROWS {
                    self.finished.push(self.$table.take()?);
                }
                Ok(())
            }
        )*

        /// Finishes the batches that are not full.
        ///
        /// # Errors
        /// When a batch does not fit its schema.
        pub fn flush(&mut self) -> Result<(), ArrowError> {
            $(
                if self.$table.rows > 0 {
                    self.finished.push(self.$table.take()?);
                }
            )*
            Ok(())
        }
    };
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            captures: Captures::new(),
            connections: Connections::new(),
            handshakes: Handshakes::new(),
            exchanges: Exchanges::new(),
            exchange_messages: ExchangeMessages::new(),
            phases: Phases::new(),
            stalls: Stalls::new(),
            lost_packets: LostPackets::new(),
            client_moves: ClientMoves::new(),
            links: Links::new(),
            packets: Packets::new(),
            place_packets: PlacePackets::new(),
            records: Records::new(),
            messages: Messages::new(),
            quic_frames: QuicFrames::new(),
            http3_frames: Http3Frames::new(),
            finished: Vec::new(),
        }
    }
}

impl Tables {
    /// The finished batches, in the order in which they became full.
    pub fn take(&mut self) -> impl Iterator<Item = Filled> {
        self.finished.drain(..)
    }

    add! {
        capture(CaptureRow) => captures: Captures;
        connection(ConnectionRow) => connections: Connections;
        handshake(HandshakeRow) => handshakes: Handshakes;
        exchange(ExchangeRow) => exchanges: Exchanges;
        exchange_message(ExchangeMessageRow) => exchange_messages: ExchangeMessages;
        phase(PhaseRow) => phases: Phases;
        stall(StallRow) => stalls: Stalls;
        lost_packet(LostPacketRow) => lost_packets: LostPackets;
        client_move(ClientMoveRow) => client_moves: ClientMoves;
        link(LinkRow) => links: Links;
        packet(PacketRow) => packets: Packets;
        sighting(PlacePacketRow) => place_packets: PlacePackets;
        record(RecordRow) => records: Records;
        message(MessageRow) => messages: Messages;
        quic_frame(QuicFrameRow) => quic_frames: QuicFrames;
        http3_frame(Http3FrameRow) => http3_frames: Http3Frames;
    }
}

/// Appends a value as the text that `write` makes of it.
fn append_text<T>(builder: &mut StringBuilder, value: T, write: fn(&mut StringBuilder, T) -> fmt::Result) {
    // What is written goes before the value that ends it; memory takes any text.
    let _ = write(builder, value);
    builder.append_value("");
}

/// An address. IPv4 without the formatting machinery, which costs a tenth of a short connection.
fn address(into: &mut StringBuilder, ip: IpAddr) -> fmt::Result {
    let IpAddr::V4(v4) = ip else { return write!(into, "{ip}") };
    let mut text = [0; 15];
    let mut len = 0;
    let mut push = |byte| {
        if let Some(next) = text.get_mut(len) {
            *next = byte;
            len += 1;
        }
    };
    for (index, octet) in v4.octets().into_iter().enumerate() {
        if index > 0 {
            push(b'.');
        }
        for (unit, needed) in [(100, octet >= 100), (10, octet >= 10), (1, true)] {
            if needed {
                push(b'0' + octet / unit % 10);
            }
        }
    }
    into.write_str(text.get(..len).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default())
}

/// A link-layer address: hexadecimal bytes with colons between them.
fn mac(into: &mut StringBuilder, Mac(bytes): Mac) -> fmt::Result {
    let text = bytes.map(hex_digits).map(|[high, low]| [b':', high, low]);
    into.write_str(str::from_utf8(text.as_flattened()).unwrap_or_default().get(1..).unwrap_or_default())
}

/// Two hexadecimal digits for each byte, written at once: every connection and handshake has some.
fn hex<const N: usize>(into: &mut StringBuilder, bytes: &[u8; N]) -> fmt::Result {
    into.write_str(str::from_utf8(bytes.map(hex_digits).as_flattened()).unwrap_or_default())
}

/// The letters of the flags, as tcpdump has them.
fn letters(into: &mut StringBuilder, flags: Flags) -> fmt::Result {
    let letters = [(Flags::SYN, "S"), (Flags::FIN, "F"), (Flags::RST, "R"), (Flags::PSH, "P"), (Flags::ACK, "A")];
    let mut set = letters.iter().filter(|&&(bit, _)| flags.0 & bit != 0);
    set.try_for_each(|(_, letter)| into.write_str(letter))
}

/// The numbers of TCP options, joined by commas.
fn kinds(into: &mut StringBuilder, kinds: OptionKinds) -> fmt::Result {
    kinds.iter().enumerate().try_for_each(|(place, kind)| write!(into, "{}{kind}", if place > 0 { "," } else { "" }))
}

#[cfg(test)]
mod tests;
