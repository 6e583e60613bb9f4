-- checkpoint: replaces the payload of a job that the holder has.
-- Arguments: offset, holder, job, fence, payload.
-- {include base spare lane job}
local j = load({ A[3] })[A[3]]
if not (j and j.l and j.l.holder == A[2] and j.l.fence == A[4]) then
    return 0
end
j.l.version = j.l.version + 1
set_payload(j, A[5])
commit(j)
write_counts()
return 1
