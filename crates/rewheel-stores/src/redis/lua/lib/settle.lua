-- settle: checks that a holder still has a job.

local function kept(j)
    return { 'K', digits(j.l.fence), digits(math.max(j.m.due - now, 0)) }
end

-- Returns the job if the holder has it under this fence. If not, returns the answer: what was written before, or that it is lost.
-- `asked`: whether the caller gives the job back. A result that comes after that is discarded.
local function guard(id, holder, fence, asked)
    local j = load({ id })[id]
    if not j then
        return nil, { 'G' }
    end
    if j.l and j.l.holder == holder and j.l.fence == fence then
        return j
    end
    local m = j.m
    local is_his = m.how ~= 0 and m.by == holder and m.by_fence == fence and (asked == GIVEN_BACK or m.how ~= GIVEN_BACK)
    if not is_his then
        return nil, { 'L' }
    end
    if m.how == KEPT and j.l and j.l.holder == holder and j.l.fence == m.given then
        local answer = kept(j)
        answer[1] = 'k'
        return nil, answer
    end
    return nil, { 'B', state_of(j) }
end

local function settled_by(j, holder, fence, how)
    j.m.how, j.m.by, j.m.by_fence = how, holder, fence
end
