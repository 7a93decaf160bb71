"""Operations on remote hosts."""
