//! Classic BPF: runs the programs that libpcap compiles from tcpdump's filter expressions.
//!
//! In: a program, then frames. Out: accepted or not. Semantics are libpcap's `bpf_filter.c`
//! (McCanne and Jacobson, 1993): a load outside the captured bytes rejects the frame, arithmetic is
//! unsigned modulo 2^32, jumps only go forward. Linux' negative "ancillary" offsets lie outside
//! every frame and so reject it. A program is checked once; running it cannot fail.

/// Cells of scratch memory.
const CELLS: usize = 16;
/// Longest program: several times what the longest expression becomes that is compiled (`bpf.py`).
const MAX_LEN: usize = 1 << 18;

/// Why a program is refused. `index` is that of the instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FilterError {
    #[error("filter program has {0} instructions, 1 to {MAX_LEN} allowed")]
    Length(usize),
    #[error("filter instruction {index}: unknown code {code:#06x}")]
    Code { index: usize, code: u16 },
    #[error("filter instruction {index}: jumps behind the end of the program")]
    Jump { index: usize },
    #[error("filter instruction {index}: scratch memory cell {cell}, 0 to 15 exist")]
    Cell { index: usize, cell: u32 },
    #[error("filter instruction {index}: divides by zero")]
    ZeroDivision { index: usize },
    #[error("filter program does not end with a return")]
    NoReturn,
}

/// A checked program.
#[derive(Clone, Debug)]
pub struct Program(Vec<Step>);

#[derive(Clone, Copy, Debug)]
enum Size {
    Word,
    Half,
    Byte,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Constant(u32),
    X,
}

#[derive(Clone, Copy, Debug)]
enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Mod,
    Xor,
}

#[derive(Clone, Copy, Debug)]
enum Test {
    Equal,
    Greater,
    GreaterOrEqual,
    Set,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Load(Size, u32),
    LoadBehindX(Size, u32),
    LoadConstant(u32),
    LoadCell(usize),
    LoadLength,
    XConstant(u32),
    XCell(usize),
    XLength,
    /// X = 4 * the low nibble there: an IPv4 header's length.
    XHeaderLength(u32),
    StoreA(usize),
    StoreX(usize),
    Alu(Alu, Operand),
    Negate,
    /// Instructions to skip.
    Jump(usize),
    /// Instructions to skip if so, if not.
    Branch(Test, Operand, usize, usize),
    AToX,
    XToA,
    Return(u32),
    ReturnA,
}

impl Program {
    /// Checks a program of `(code, jt, jf, k)` instructions, as in C's `struct bpf_insn`.
    ///
    /// # Errors
    /// The first thing that could make a run go wrong.
    pub fn new(instructions: &[(u16, u8, u8, u32)]) -> Result<Self, FilterError> {
        let len = instructions.len();
        if len == 0 || len > MAX_LEN {
            return Err(FilterError::Length(len));
        }
        let mut steps = Vec::with_capacity(len);
        for (index, &instruction) in instructions.iter().enumerate() {
            let step = Step::new(index, instruction)?;
            let furthest = match step {
                Step::Jump(by) => by,
                Step::Branch(_, _, yes, no) => yes.max(no),
                _ => 0,
            };
            if furthest > 0 && furthest >= len - index - 1 {
                return Err(FilterError::Jump { index });
            }
            steps.push(step);
        }
        match steps.last() {
            Some(Step::Return(_) | Step::ReturnA) => Ok(Self(steps)),
            _ => Err(FilterError::NoReturn),
        }
    }

    /// Does the filter accept this frame? `original_len` is its length on the wire.
    #[must_use]
    pub fn accepts(&self, data: &[u8], original_len: u32) -> bool {
        self.run(data, original_len).is_some_and(|verdict| verdict != 0)
    }

    /// The returned value; `None` where the program reads outside the frame or divides by zero.
    fn run(&self, data: &[u8], wire: u32) -> Option<u32> {
        let (mut a, mut x, mut cells) = (0_u32, 0_u32, [0_u32; CELLS]);
        let mut next = 0;
        loop {
            let step = *self.0.get(next)?;
            next += 1;
            match step {
                Step::Load(size, k) => a = load(data, size, k)?,
                Step::LoadBehindX(size, k) => a = load(data, size, x.checked_add(k)?)?,
                Step::LoadConstant(k) => a = k,
                Step::LoadCell(cell) => a = *cells.get(cell)?,
                Step::LoadLength => a = wire,
                Step::XConstant(k) => x = k,
                Step::XCell(cell) => x = *cells.get(cell)?,
                Step::XLength => x = wire,
                Step::XHeaderLength(k) => x = (load(data, Size::Byte, k)? & 0x0f) << 2,
                Step::StoreA(cell) => *cells.get_mut(cell)? = a,
                Step::StoreX(cell) => *cells.get_mut(cell)? = x,
                Step::Alu(operator, operand) => a = calculate(operator, a, operand.value(x))?,
                Step::Negate => a = a.wrapping_neg(),
                Step::Jump(by) => next += by,
                Step::Branch(test, operand, yes, no) => {
                    next += if test.holds(a, operand.value(x)) { yes } else { no };
                }
                Step::AToX => x = a,
                Step::XToA => a = x,
                Step::Return(k) => return Some(k),
                Step::ReturnA => return Some(a),
            }
        }
    }
}

impl Step {
    /// Codes as in `pcap/bpf.h`: class, then size and mode, or operation and source.
    fn new(index: usize, (code, jt, jf, k): (u16, u8, u8, u32)) -> Result<Self, FilterError> {
        let cell = || match usize::try_from(k) {
            Ok(cell) if cell < CELLS => Ok(cell),
            _ => Err(FilterError::Cell { index, cell: k }),
        };
        let operand = if code & 0x08 == 0 { Operand::Constant(k) } else { Operand::X };
        let branch = |test| Self::Branch(test, operand, jt.into(), jf.into());
        let step = match code {
            0x00 => Self::LoadConstant(k),
            0x20 => Self::Load(Size::Word, k),
            0x28 => Self::Load(Size::Half, k),
            0x30 => Self::Load(Size::Byte, k),
            0x40 => Self::LoadBehindX(Size::Word, k),
            0x48 => Self::LoadBehindX(Size::Half, k),
            0x50 => Self::LoadBehindX(Size::Byte, k),
            0x60 => Self::LoadCell(cell()?),
            0x80 => Self::LoadLength,
            0x01 => Self::XConstant(k),
            0x61 => Self::XCell(cell()?),
            0x81 => Self::XLength,
            0xb1 => Self::XHeaderLength(k),
            0x02 => Self::StoreA(cell()?),
            0x03 => Self::StoreX(cell()?),
            0x04 | 0x0c => Self::Alu(Alu::Add, operand),
            0x14 | 0x1c => Self::Alu(Alu::Sub, operand),
            0x24 | 0x2c => Self::Alu(Alu::Mul, operand),
            0x34 | 0x94 if k == 0 => return Err(FilterError::ZeroDivision { index }),
            0x34 | 0x3c => Self::Alu(Alu::Div, operand),
            0x44 | 0x4c => Self::Alu(Alu::Or, operand),
            0x54 | 0x5c => Self::Alu(Alu::And, operand),
            0x64 | 0x6c => Self::Alu(Alu::ShiftLeft, operand),
            0x74 | 0x7c => Self::Alu(Alu::ShiftRight, operand),
            0x84 => Self::Negate,
            0x94 | 0x9c => Self::Alu(Alu::Mod, operand),
            0xa4 | 0xac => Self::Alu(Alu::Xor, operand),
            0x05 => Self::Jump(usize::try_from(k).map_err(|_| FilterError::Jump { index })?),
            0x15 | 0x1d => branch(Test::Equal),
            0x25 | 0x2d => branch(Test::Greater),
            0x35 | 0x3d => branch(Test::GreaterOrEqual),
            0x45 | 0x4d => branch(Test::Set),
            0x06 => Self::Return(k),
            0x16 => Self::ReturnA,
            0x07 => Self::AToX,
            0x87 => Self::XToA,
            _ => return Err(FilterError::Code { index, code }),
        };
        Ok(step)
    }
}

impl Operand {
    fn value(self, x: u32) -> u32 {
        match self {
            Self::Constant(k) => k,
            Self::X => x,
        }
    }
}

impl Test {
    fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
            Self::Set => a & b != 0,
        }
    }
}

fn calculate(operator: Alu, a: u32, b: u32) -> Option<u32> {
    Some(match operator {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::Mul => a.wrapping_mul(b),
        Alu::Div => a.checked_div(b)?,
        Alu::Or => a | b,
        Alu::And => a & b,
        Alu::ShiftLeft => a.checked_shl(b).unwrap_or(0),
        Alu::ShiftRight => a.checked_shr(b).unwrap_or(0),
        Alu::Mod => a.checked_rem(b)?,
        Alu::Xor => a ^ b,
    })
}

/// Big-endian load from the captured bytes.
fn load(data: &[u8], size: Size, offset: u32) -> Option<u32> {
    let bytes = data.get(usize::try_from(offset).ok()?..)?;
    Some(match size {
        Size::Word => u32::from_be_bytes(*bytes.first_chunk()?),
        Size::Half => u16::from_be_bytes(*bytes.first_chunk()?).into(),
        Size::Byte => (*bytes.first()?).into(),
    })
}

#[cfg(test)]
mod tests;
